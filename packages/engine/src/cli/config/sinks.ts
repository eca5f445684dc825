// The `sinks` of the configuration: where notices go. What is secret may stand in the environment or in a file of its own
// instead, as LEASEHOLD_SINK_<NAME>_<FIELD> says.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import * as z from 'zod'
import type { NoticeKind } from '../../model/notice.ts'
import { noticeKinds } from '../../model/notice.ts'
import type { SinkConfig } from '../../model/sinks.ts'

export interface SinkValue {
  readonly name: string
  readonly value: Readonly<Record<string, unknown>>
  readonly origin: string
}

interface Around {
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  /** The configuration file, where there is one. */
  readonly file: string | undefined
}

interface Field {
  readonly schema: z.ZodType
  readonly expected: string
  /** It is read from the environment too, and never shown. */
  readonly secret?: true
  readonly fallback?: unknown
}

const NAME = /^[a-z][a-z0-9-]{0,39}$/
const url = (protocol: RegExp, example: string): Field => ({
  schema: z.url({ protocol }),
  expected: `an address such as ${example}`,
  // it may carry a token in its path
  secret: true,
})
const kinds: Field = {
  schema: z.array(z.enum(noticeKinds)).min(1),
  expected: `a list of ${noticeKinds.join(', ')}`,
  fallback: noticeKinds,
}
const allowPrivate: Field = { schema: z.boolean(), expected: 'true or false', fallback: false }
const text = (expected: string): Field => ({ schema: z.string().min(1).max(500), expected })
const address = z.string().regex(/^[^\s@<>,;]+@[^\s@<>,;]+$/)
const optionalSecret = (expected: string, schema: z.ZodType = z.string().min(1)): Field => ({
  schema,
  expected,
  secret: true,
  fallback: null,
})

const fields = {
  log: { kinds },
  webhook: {
    kinds,
    url: url(/^https?$/, 'https://example.com/hook'),
    secret: {
      schema: z
        .union([z.array(z.string()), z.string().transform((all) => all.trim().split(/[\s,]+/))])
        .pipe(z.array(z.string().regex(/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/)).min(1)),
      expected:
        'whsec_ and 24 bytes or more in base64, or several of them while they are exchanged; make one with: echo whsec_$(openssl rand -base64 32)',
      secret: true,
    },
    allowPrivate,
  },
  smtp: {
    kinds,
    url: url(/^smtps?$/, 'smtps://user@mail.example.com'),
    password: optionalSecret('a text that is not empty'),
    from: text('an address such as Leasehold <leasehold@example.com>'),
    to: {
      schema: z.union([address, z.array(address).min(1)]),
      expected: 'an address such as ops@example.com, or a list of them',
    },
  },
  github: {
    kinds,
    api: {
      schema: z.url({ protocol: /^https?$/ }).transform((at) => at.replace(/\/+$/, '')),
      expected: 'an address such as https://api.github.com',
      fallback: 'https://api.github.com',
    },
    repository: {
      schema: z.string().regex(/^[\w.-]+\/[\w.-]+$/),
      expected: 'owner/name',
    },
    issue: {
      schema: z.union([z.number().int().min(1), z.literal('key')]),
      expected: 'the number of an issue, or "key" for the one that the run’s key names',
    },
    token: optionalSecret('a token that may comment on issues'),
    app: {
      schema: z.union([z.string().min(1), z.number().int().transform(String)]),
      expected: 'the id of an app',
      fallback: null,
    },
    installation: {
      schema: z.number().int().min(1),
      expected: 'the number of an installation of the app',
      fallback: null,
    },
    privateKey: optionalSecret('the app’s private key in PEM', z.string().includes('PRIVATE KEY')),
    allowPrivate,
  },
} as const satisfies Record<string, Readonly<Record<string, Field>>>
type Type = keyof typeof fields

/** Reads the sinks; what is wrong with them is added to `faults`. */
export const readSinks = (
  given: unknown,
  around: Around,
  faults: string[],
): { readonly sinks: SinkConfig[]; readonly values: SinkValue[] } => {
  if (given === undefined) return { sinks: [], values: [] }
  const origin = `file ${around.file}`
  if (!isObject(given)) {
    faults.push(
      `sinks is ${JSON.stringify(given)} (${origin}); expected an object of sinks by name`,
    )
    return { sinks: [], values: [] }
  }
  const sinks: SinkConfig[] = []
  const values: SinkValue[] = []
  for (const [name, each] of Object.entries(given)) {
    const read = readOne(name, each, around, origin, faults)
    if (read === undefined) continue
    sinks.push(...configsOf(name, read, faults, origin))
    values.push({ name: `sinks.${name}`, value: shownOf(read), origin })
  }
  const names = sinks.map((sink) => sink.name)
  for (const twice of new Set(names.filter((name, i) => names.indexOf(name) !== i)))
    faults.push(`two sinks are called ${twice} (${origin}); give one of them another name`)
  return { sinks, values }
}

type Read = Readonly<Record<string, unknown>> & { readonly type: Type }

const readOne = (
  name: string,
  given: unknown,
  around: Around,
  origin: string,
  faults: string[],
): Read | undefined => {
  const at = `sinks.${name}`
  if (!NAME.test(name)) {
    faults.push(
      `${at} is not a name for a sink (${origin}); expected a small letter and up to 39 small letters, digits and hyphens`,
    )
    return undefined
  }
  const type = isObject(given) ? given['type'] : undefined
  if (!isObject(given) || typeof type !== 'string' || !Object.hasOwn(fields, type)) {
    faults.push(
      `${at}.type is ${JSON.stringify(type)} (${origin}); expected ${Object.keys(fields).join(', ')}`,
    )
    return undefined
  }
  const known: Readonly<Record<string, Field>> = fields[type as Type]
  const read: Record<string, unknown> = { type }
  const before = faults.length
  for (const [field, { schema, expected, secret, fallback }] of Object.entries(known)) {
    const found = (secret ? fromOutside(name, field, around, faults) : undefined) ?? {
      value: given[field],
      origin,
    }
    if (found.value === undefined) {
      if (fallback === undefined)
        faults.push(
          `${at}.${field} is missing (${origin}${secret ? `, or environment ${variable(name, field)}` : ''}); expected ${expected}`,
        )
      read[field] = fallback
      continue
    }
    const parsed = schema.safeParse(found.value)
    if (!parsed.success)
      faults.push(
        `${at}.${field} is ${secret ? 'not usable' : JSON.stringify(found.value)} (${found.origin}); expected ${expected}`,
      )
    else read[field] = parsed.data
  }
  for (const field of Object.keys(given))
    if (field !== 'type' && !Object.hasOwn(known, field))
      faults.push(
        `${at}.${field} is not a setting of a ${type} sink (${origin}); known are ${Object.keys(known).join(', ')}`,
      )
  return faults.length > before ? undefined : (read as Read)
}

const variable = (name: string, field: string): string =>
  `LEASEHOLD_SINK_${name.replaceAll('-', '_')}_${field.replace(/[A-Z]/g, (letter) => `_${letter}`)}`.toUpperCase()

const fromOutside = (
  name: string,
  field: string,
  { env, cwd }: Around,
  faults: string[],
): { readonly value: unknown; readonly origin: string } | undefined => {
  const key = variable(name, field)
  const direct = env[key]
  if (direct !== undefined && direct !== '') return { value: direct, origin: `environment ${key}` }
  const pointer = env[`${key}_FILE`]
  if (pointer === undefined || pointer === '') return undefined
  const origin = `environment ${key}_FILE`
  try {
    return { value: readFileSync(path.resolve(cwd, pointer), 'utf8').trim(), origin }
  } catch (error) {
    faults.push(
      `sinks.${name}.${field} cannot be read from ${pointer} (${origin}): ${(error as Error).message}`,
    )
    return undefined
  }
}

const configsOf = (name: string, read: Read, faults: string[], origin: string): SinkConfig[] => {
  const common = { name, kinds: read['kinds'] as readonly NoticeKind[] }
  switch (read.type) {
    case 'log':
      return [{ ...common, type: 'log' }]
    case 'webhook':
      return [
        {
          ...common,
          type: 'webhook',
          url: read['url'] as string,
          secrets: read['secret'] as string[],
          allowPrivate: read['allowPrivate'] as boolean,
        },
      ]
    case 'smtp': {
      const to = read['to'] as string | readonly string[]
      const mail = {
        type: 'smtp',
        kinds: common.kinds,
        url: read['url'] as string,
        password: read['password'] as string | null,
        from: read['from'] as string,
      } as const
      // each recipient is a sink of its own: what one has taken is not sent to it again for another's sake
      return typeof to === 'string'
        ? [{ ...mail, name, to }]
        : to.map((one) => ({ ...mail, name: `${name}-${slug(one)}`, to: one }))
    }
    case 'github': {
      const auth = authOf(read)
      if (auth === null) {
        faults.push(
          `sinks.${name} says not how to authorize (${origin}); expected a token (environment ${variable(name, 'token')}), or app, installation and privateKey (environment ${variable(name, 'privateKey')})`,
        )
        return []
      }
      return [
        {
          ...common,
          type: 'github',
          api: read['api'] as string,
          repository: read['repository'] as string,
          issue: read['issue'] as number | 'key',
          auth,
          allowPrivate: read['allowPrivate'] as boolean,
        },
      ]
    }
  }
}

const slug = (address: string): string =>
  address
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 60)

const authOf = ({ token, app, installation, privateKey }: Read) =>
  typeof token === 'string'
    ? { token }
    : typeof app === 'string' && typeof installation === 'number' && typeof privateKey === 'string'
      ? { app, installation, privateKey }
      : null

const shownOf = (read: Read): Readonly<Record<string, unknown>> => {
  const known: Readonly<Record<string, Field>> = fields[read.type]
  return Object.fromEntries(
    Object.entries(read).map(([field, value]) => [
      field,
      known[field]?.secret && value !== null ? 'hidden' : value,
    ]),
  )
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
