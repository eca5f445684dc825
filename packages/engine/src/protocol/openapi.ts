// The OpenAPI 3.1 document, made from the same schemas that check requests, so it cannot say anything else than they do.
import * as z from 'zod'
import type { ErrorCode } from '../kernel/codes.ts'
import { codes } from '../kernel/codes.ts'
import { problem, PROBLEM_TYPE } from './problem.ts'
import type { Route } from './route.ts'
import { ACTOR_HEADER, KEY_HEADER, REPLAYED_HEADER, routes } from './routes.ts'

type Json = Record<string, unknown>

/** Every route can answer these. */
const COMMON_REFUSALS: readonly ErrorCode[] = [
  'invalid_request',
  'unauthorized',
  'not_allowed',
  'forbidden_origin',
  'draining',
]

export const openApi = (): Json => {
  const schemas: Json = {}
  const schemaOf = (shape: z.ZodType, io: 'input' | 'output'): Json => {
    const {
      $schema: _dialect,
      $defs,
      ...own
    } = z.toJSONSchema(shape, {
      io,
      unrepresentable: 'any',
    }) as Json
    const { id, ...rest } = own
    for (const [name, part] of Object.entries(($defs ?? {}) as Json))
      schemas[name] ??= hoisted(part as Json)
    if (typeof id !== 'string') return hoisted(rest)
    schemas[id] ??= hoisted(rest)
    return { $ref: `#/components/schemas/${id}` }
  }
  const problemRef = schemaOf(problem, 'output')
  const paths: Record<string, Json> = {}
  for (const [name, entry] of Object.entries(routes)) {
    const route: Route = entry
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    ;(paths[path] ??= {})[route.method.toLowerCase()] = operation(name, route, schemaOf, problemRef)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Leasehold',
      version: 'v1',
      description:
        'A durable workflow engine. Instants are integer milliseconds on the store’s clock; payloads are JSON values, and JSON text on the routes of executors.',
    },
    tags: [...new Set(Object.values(routes).map((route) => route.group))].map((each) => ({
      name: each,
    })),
    paths,
    components: {
      schemas,
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'Needed where the server is configured with tokens',
        },
      },
    },
  }
}

const operation = (
  name: string,
  route: Route,
  schemaOf: (shape: z.ZodType, io: 'input' | 'output') => Json,
  problemRef: Json,
): Json => {
  const own = route.hot === true || route.raw === true
  const keyed = route.method === 'POST' && !own
  const writes = route.method !== 'GET' && !own
  const statuses = new Map<number, ErrorCode[]>()
  const refusals = new Set<ErrorCode>([
    ...(route.raw === true
      ? []
      : route.role === 'public'
        ? (['forbidden_origin'] as const)
        : COMMON_REFUSALS),
    ...route.refusals,
    ...(keyed ? (['command_reused'] as const) : []),
  ])
  for (const code of refusals) {
    const { status } = codes[code]
    statuses.set(status, [...(statuses.get(status) ?? []), code])
  }
  return {
    operationId: name,
    summary: route.summary,
    tags: [route.group],
    'x-role': route.role,
    security: route.role === 'public' ? [] : [{}, { token: [] }],
    parameters: [
      ...fields(route.params, 'path', schemaOf),
      ...fields(route.query, 'query', schemaOf),
      ...(keyed
        ? [header(KEY_HEADER, 'The command’s id: a repeat gets the first answer, for 24 h')]
        : []),
      ...(writes
        ? [
            header(
              ACTOR_HEADER,
              "Who acts; default `api`. A name beyond ASCII as `UTF-8''` and its percent-encoded UTF-8 (RFC 8187)",
            ),
          ]
        : []),
      ...(route.stream === true ? [header('last-event-id', 'Where to resume')] : []),
    ],
    ...(route.raw === true
      ? {
          requestBody: {
            required: true,
            description: 'As the sender signs it',
            content: { '*/*': { schema: { type: 'string', format: 'binary' } } },
          },
        }
      : {}),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: schemaOf(route.body, 'input') } },
          },
        }),
    responses: {
      200: {
        description: route.stream === true ? 'Server-sent events' : 'Done',
        ...(keyed
          ? {
              headers: {
                [REPLAYED_HEADER]: {
                  description: '`true` where this is the first answer again',
                  schema: { type: 'string' },
                },
              },
            }
          : {}),
        content:
          route.stream === true
            ? { 'text/event-stream': { schema: { type: 'string' } } }
            : {
                [route.text ?? 'application/json']: { schema: schemaOf(route.answer, 'output') },
              },
      },
      ...Object.fromEntries(
        [...statuses]
          .sort(([a], [b]) => a - b)
          .map(([status, list]) => [
            status,
            {
              description: list.map((code) => `\`${code}\`: ${codes[code].what}`).join(' '),
              content: { [PROBLEM_TYPE]: { schema: problemRef } },
            },
          ]),
      ),
    },
  }
}

const header = (name: string, description: string): Json => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
})

const fields = (
  shape: z.ZodObject | undefined,
  where: 'path' | 'query',
  schemaOf: (shape: z.ZodType, io: 'input' | 'output') => Json,
): Json[] => {
  if (!shape) return []
  const { properties = {}, required = [] } = schemaOf(shape, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema,
  }))
}

/** References into a schema of its own become references into the document. */
const hoisted = (schema: Json): Json =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json
