// What executors send: the shapes of model/work.ts, checked at the door. Unknown members are dropped, so that a newer
// executor can talk to this server; the protocol's version says what neither side may do without.
import * as z from 'zod'
import { firstReasons } from '../model/attempt.ts'
import { LINE_MAX, logSources } from '../model/log.ts'
import { entryKinds } from '../model/work.ts'
import { instant, int, json, jsonText, maybe, name, someJson, whole } from './values.ts'

/** How long one request may wait for runs, in milliseconds: proxies cut what is silent for longer. */
export const CLAIM_WAIT_MS_MAX = 20_000

const text = z.string().max(4_000)
const key = z.string().min(1).max(2_000)
/** Delays may be the outcome of a jitter. */
const ms = z.number().min(0).max(1e15).overwrite(Math.ceil)
const duration = z.union([z.number(), z.string().max(100)])

const definition = z
  .object({
    workflow: name,
    version: name,
    queue: name,
    labels: z.array(name).max(20),
    input: json.describe('JSON Schema (2020-12), or null'),
    output: json.describe('JSON Schema (2020-12), or null'),
    limits: z.array(
      z.object({
        key: name,
        value: int.min(0),
        mode: z.enum(['whole_run', 'while_held']).exactOptional(),
        policy: z.enum(['queue', 'reject']).exactOptional(),
        units: z.union([int, z.string()]).exactOptional(),
      }),
    ),
    totalLimitMs: ms.nullable(),
    attemptLimitMs: ms.nullable(),
    startByMs: ms.nullable(),
    retry: z
      .object({
        maxAttempts: whole.exactOptional(),
        base: duration.exactOptional(),
        factor: z.number().exactOptional(),
        max: duration.exactOptional(),
      })
      .nullable(),
    onEnd: name.nullable(),
    slotClass: name,
    isolation: z.enum(['inline', 'process', 'job']),
  })
  .meta({ id: 'Definition' })

export const registerRequest = z
  .object({
    protocol: int,
    session: name,
    build: text,
    host: text,
    pid: int,
    queues: z.array(name).max(1_000),
    labels: z.array(name).max(1_000),
    capacity: int.min(0),
    definitions: z.array(definition).max(1_000),
  })
  .meta({ id: 'Register' })

/** A version of a workflow as `definitionKey` names it: a JSON text. */
const versionKey = z.string().min(1).max(1_000)

export const claimRequest = z
  .object({
    session: name,
    claim: int.min(1),
    most: int.min(0).max(10_000),
    except: z.array(name).max(100_000),
    only: z.array(versionKey).exactOptional(),
    waitMs: z.number().min(0),
  })
  .meta({ id: 'Claim' })

const entry = z.object({
  n: int.min(1),
  key,
  kind: z.enum(entryKinds),
  at: instant,
  output: jsonText,
  error: jsonText,
})

const child = z.object({
  id: name,
  command: maybe(name),
  workflow: name,
  version: maybe(name),
  input: jsonText,
  key: maybe(name),
  owner: maybe(z.union([name, z.literal('')])),
  queue: maybe(name),
  labels: maybe(z.array(name)),
  priority: maybe(int),
  delayMs: maybe(ms),
  startAt: maybe(instant),
  startByMs: maybe(ms),
  totalLimitMs: maybe(ms),
  attemptLimitMs: maybe(ms),
  awaited: z.boolean(),
  onParentEnd: z.enum(['cancel', 'detach']),
})

const waitRecord = z.object({
  key,
  kind: z.enum(['time', 'signal', 'approval', 'child', 'retry']),
  name: z.string().nullable().exactOptional(),
  dueInMs: ms.exactOptional(),
  dueAt: instant.exactOptional(),
  tries: int.exactOptional(),
  error: jsonText.exactOptional(),
  approval: z
    .object({ prompt: z.string(), data: jsonText, deciders: z.array(name) })
    .exactOptional(),
  child: child.exactOptional(),
})

const note = z.string()
const end = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('complete'), output: jsonText }),
  z.object({ kind: z.literal('continue'), input: jsonText, runId: name }),
  z.object({
    kind: z.literal('fail'),
    reason: note,
    note,
    error: someJson,
    retryInMs: ms.exactOptional(),
  }),
  z.object({ kind: z.literal('suspend'), keys: z.array(key) }),
  z.object({
    kind: z.literal('hand_back'),
    reason: note,
    toEnd: z.boolean().exactOptional(),
    ifWaiting: z.array(versionKey).exactOptional(),
  }),
  z.object({ kind: z.literal('park'), reason: note, note }),
  z.object({ kind: z.literal('stale'), note }),
  z.object({ kind: z.literal('revoke'), reason: note, note }),
  z.object({ kind: z.literal('lose'), note }),
])

export const attemptWrite = z
  .object({
    run: name,
    attempt: int,
    entries: z.array(entry),
    waits: z.array(waitRecord).exactOptional(),
    closes: z.array(key).exactOptional(),
    spawns: z.array(child.extend({ as: key })).exactOptional(),
    state: jsonText.exactOptional(),
    progress: someJson.exactOptional(),
    stream: z.array(z.object({ stream: name, seq: int, data: jsonText })).exactOptional(),
    firstReason: z.enum(firstReasons).nullable().exactOptional(),
    phase: z.enum(['preparing', 'launched']).exactOptional(),
    look: z.boolean().exactOptional(),
    end: end.exactOptional(),
  })
  .meta({ id: 'AttemptWrite' })

const held = z.object({ run: name, attempt: int })

export const renewRequest = z
  .object({
    session: name,
    draining: z.boolean(),
    status: jsonText,
    letGo: z.array(held.extend({ reason: text })),
    held: z
      .union([
        z.object({ claim: int, digest: z.string() }),
        z.object({ claim: int, runs: z.array(held) }),
      ])
      .exactOptional(),
  })
  .meta({ id: 'Renew' })

const logLine = z.object({
  n: whole.min(1),
  at: instant,
  source: z.enum(logSources),
  text: z.string().max(LINE_MAX + 200),
  facts: jsonText,
})

export const logParts = z
  .array(z.object({ run: name, attempt: int, lines: z.array(logLine).min(1).max(10_000) }))
  .max(1_000)

export const logsRequest = z.object({ session: name, parts: logParts }).meta({ id: 'Logs' })

export const closeRequest = z
  .object({
    session: name,
    reason: text,
    except: z.array(name).exactOptional(),
    logs: logParts.exactOptional(),
  })
  .meta({ id: 'Close' })

/** For whom a launcher asks for a token: the session that the attempt's own process will have. */
export const grantRequest = z
  .object({ session: name, run: name, attempt: int.min(1), runner: name, startByMs: ms })
  .meta({ id: 'Grant' })

export const adoptRequest = z
  .object({ session: name, run: name, attempt: int.min(1) })
  .meta({ id: 'Adopt' })

/** An answer of the engine, as model/work.ts has it. */
export const answer = z
  .looseObject({ ok: z.literal(true) })
  .meta({ id: 'Ok', description: 'As in the executor protocol' })

/** A write that was refused, or could not be done (`fault`), while the others of its batch were answered. */
export const itemProblem = z
  .object({
    ok: z.literal(false),
    code: z.string(),
    message: z.string(),
    detail: z.record(z.string(), json),
    fault: z.boolean().exactOptional(),
  })
  .meta({ id: 'ItemProblem' })
