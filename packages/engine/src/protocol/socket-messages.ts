// The messages between an executor and its server over a WebSocket, as both ends check them. An executor asks, each time
// with an id of its own, and gets one `reply` or one `error` with that id; what the server says unasked has no id.
import * as z from 'zod'
import { toldDirectives } from '../model/work.ts'
import {
  claimRequest,
  closeRequest,
  logsRequest,
  registerRequest,
  renewRequest,
} from './executor-shapes.ts'
import { int, json, name, whole } from './values.ts'

const id = whole.min(1)
const text = z.string().max(4_000)
const asked = <T extends string, B extends z.ZodType>(type: T, body: B) =>
  z.object({ type: z.literal(type), id, body })

/** Runs of one offer; a claim of more comes in several. */
export const OFFER_MAX = 100

const ready = claimRequest.omit({ session: true })

/** What an executor says. Its session is that of its connection, so no message names one but the first. */
export const fromExecutor = z.discriminatedUnion('type', [
  /** The first message of each connection. The first connection of a session registers it, a later one takes it over. */
  asked('session:register', registerRequest.extend({ connection: int.min(1) })),
  /** It has room: the answer says which offer was made, or that there was none in time. */
  asked('session:ready', ready),
  /** It has none any more: no offer is made until it is ready again. */
  asked('session:busy', z.object({})),
  asked('session:renew', renewRequest.omit({ session: true })),
  asked('session:close', closeRequest.omit({ session: true })),
  /** A claim of exactly these runs; a repeat under its number gets what the first took. */
  asked(
    'run:accept',
    ready
      .omit({ waitMs: true })
      .extend({ offer: name.nullable(), runs: z.array(name).min(1).max(OFFER_MAX) }),
  ),
  asked('run:reject', z.object({ offer: name, reason: text })),
  asked(
    'run:checkpoint',
    z.object({ writes: z.array(z.unknown()).max(10_000).describe('Each an AttemptWrite') }),
  ),
  asked('run:journal', z.object({ run: name, after: int.min(0) })),
  /** Lines of attempts, which may be those of an earlier session of this executor. */
  asked('run:logs', logsRequest),
])
export type FromExecutor = z.output<typeof fromExecutor>
export type AskedType = FromExecutor['type']
export const askedTypes: readonly string[] = fromExecutor.options.map(
  (option) => option.shape.type.value,
)

const told = z.object({
  run: name,
  attempt: whole,
  directive: z.enum(toldDirectives),
  note: z.string().nullable(),
})

/** What a server says. */
export const fromServer = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reply'), id, body: z.looseObject({}) }),
  z.object({
    type: z.literal('error'),
    /** Null where what was sent had none that could be read. */
    id: id.nullable(),
    body: z.object({ code: z.string(), message: z.string(), detail: z.record(z.string(), json) }),
  }),
  /** These runs may be claimed by `run:accept` under this number. It reserves nothing; after `ttlMs` others are offered them. */
  z.object({
    type: z.literal('run:offer'),
    body: z.object({
      offer: name,
      claim: whole,
      runs: z.array(name).min(1).max(OFFER_MAX),
      ttlMs: whole,
    }),
  }),
  z.object({ type: z.literal('run:told'), body: told }),
  /** The session is over: what it held is somebody else's. */
  z.object({ type: z.literal('session:ended'), body: z.object({ message: z.string() }) }),
])
export type FromServer = z.output<typeof fromServer>
