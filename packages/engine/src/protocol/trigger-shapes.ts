// Triggers as people see and set them.
import * as z from 'zod'
import { arrivalOutcomes, triggerKinds } from '../model/trigger.ts'
import { id, instant, json, maybe, name, whole } from './values.ts'

/** It stands in the address of the hook. */
export const hookName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,99}$/)
  .describe('1 to 100 of a-z, 0-9, dot, underscore and hyphen')
const headerName = z
  .string()
  .max(100)
  .regex(/^[A-Za-z0-9-]+$/)
  .transform((text) => text.toLowerCase())
const pointer = z.string().max(1_000)
const template = json.describe(
  'Any JSON value; `{"$": "/a/b"}` in it is replaced by what the payload has at this JSON pointer, `{"$": ""}` by all of it; a `default` beside `$` is for where there is nothing',
)

const rule = z.strictObject({
  events: maybe(z.array(name).min(1).max(100)).describe(
    'Events that it takes, as `push`, or with their action as `pull_request.opened`. Default: any',
  ),
  where: z
    .record(pointer, json)
    .exactOptional()
    .describe(
      'What must stand at JSON pointers: a value, or a list of values of which one will do',
    ),
  workflow: name,
  key: template
    .optional()
    .describe(
      'A template of the run’s key: a text or a number, or a list of them, which are joined',
    ),
  owner: template.optional(),
  start: maybe(
    z.strictObject({
      input: template.optional(),
      queue: maybe(name),
      labels: maybe(z.array(name).max(20)),
      priority: maybe(whole.min(-100).max(100)),
    }),
  ).describe(
    'How a run is started. Default where there is no signal: with the payload as its input',
  ),
  signal: maybe(z.strictObject({ name, payload: template.optional() })).describe(
    'A signal to the run of the key. With `start` too, a run is started where none has the key',
  ),
})

export const newTrigger = z
  .strictObject({
    kind: z
      .enum(triggerKinds)
      .describe('How the sender shows who it is: as GitHub, by Standard Webhooks, or by a token'),
    secrets: z
      .array(name)
      .min(1)
      .max(10)
      .describe('Names of secrets in the server’s configuration, of which any will do'),
    own: maybe(z.array(z.union([name, whole])).max(20)).describe(
      'The engine’s own actor at the sender, by login or id: what it causes is ignored. Empty: it has none there',
    ),
    actorAt: maybe(z.array(pointer).min(1).max(5)).describe(
      'Pointers to who caused a delivery. Default for github: its sender',
    ),
    tokenHeader: maybe(headerName).describe(
      'Of a token: its header. Default authorization, as Bearer',
    ),
    deliveryHeader: maybe(headerName).describe(
      'Of a token: the header with the delivery’s id. Default: the digest of the body is its id',
    ),
    eventHeader: maybe(headerName).describe('Of a token: the header with the event'),
    rules: z.array(rule).min(1).max(100).describe('The first that takes a delivery counts'),
  })
  .meta({ id: 'NewTrigger' })

export const trigger = z
  .object({
    name: z.string(),
    kind: z.enum(triggerKinds),
    secrets: z.array(z.string()),
    own: z.array(z.union([z.string(), whole])).nullable(),
    actorAt: z.array(z.string()).nullable(),
    tokenHeader: z.string().nullable(),
    deliveryHeader: z.string().nullable(),
    eventHeader: z.string().nullable(),
    rules: z.array(
      z.object({
        events: z.array(z.string()).nullable(),
        where: z.record(z.string(), json),
        workflow: z.string(),
        key: json,
        owner: json,
        start: z
          .object({
            input: json,
            queue: z.string().nullable(),
            labels: z.array(z.string()),
            priority: whole,
          })
          .nullable(),
        signal: z.object({ name: z.string(), payload: json }).nullable(),
      }),
    ),
    path: z.string().describe('Where its deliveries are sent'),
    faults: z
      .array(z.string())
      .describe('What keeps it from working as meant on the server that answers'),
    pausedAt: instant.nullable(),
    pausedBy: z.string().nullable(),
    why: z.string().nullable(),
    createdAt: instant,
    updatedAt: instant,
    updatedBy: z.string(),
  })
  .meta({ id: 'Trigger' })

export const triggerDetail = z
  .object({
    now: instant,
    trigger,
    deliveries: z
      .array(
        z.object({
          delivery: z.string(),
          event: z.string().nullable(),
          outcome: z.enum(arrivalOutcomes),
          run: id.nullable(),
          note: z.string().nullable(),
          times: whole.describe('How often it came'),
          at: instant,
          lastAt: instant,
        }),
      )
      .describe('The newest, without those that no rule took'),
  })
  .meta({ id: 'TriggerDetail' })

export const taken = z
  .object({
    outcome: z.enum(arrivalOutcomes),
    run: id.nullable(),
    note: z.string().nullable(),
    repeated: z.boolean().describe('It had come before, and this is what became of it then'),
  })
  .meta({ id: 'Taken' })

export const tried = z
  .object({
    ignored: z.string().nullable().describe('Why nothing would be done'),
    action: z
      .object({
        workflow: z.string(),
        key: z.string().nullable(),
        owner: z.string(),
        start: z
          .object({
            input: json,
            queue: z.string().nullable(),
            labels: z.array(z.string()),
            priority: whole,
          })
          .nullable(),
        signal: z.object({ name: z.string(), payload: json }).nullable(),
      })
      .nullable()
      .describe(
        'What would be done; with both, the signal where a run has the key, and else the start',
      ),
  })
  .meta({ id: 'Tried' })
