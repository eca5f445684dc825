// What a route is: one entry of the one table that feeds the server, the client, the command line and the OpenAPI document.
import type * as z from 'zod'
import type { ErrorCode } from '../kernel/codes.ts'

/** Who may call a route; `public` needs no token, an operator may all that a viewer may, an admin everything. */
export type Role = 'public' | 'viewer' | 'operator' | 'executor'
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

export interface Route {
  readonly method: Method
  /** Under the server's root, parameters as `:name`. */
  readonly path: string
  readonly summary: string
  readonly group: string
  readonly role: Role
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  readonly answer: z.ZodType
  /** Beside those that every route can answer: `invalid_request`, `unauthorized`, `not_allowed`, `forbidden_origin`, `draining`. */
  readonly refusals: readonly ErrorCode[]
  /** The route answers server-sent events, each one message of this shape. */
  readonly stream?: true
  /** The route answers text of this type. */
  readonly text?: string
  /** The route repeats by keys of its own and takes no `Idempotency-Key`. */
  readonly hot?: true
  /** Its body is taken as the bytes that came: who sent them is shown by their signature, and no token is asked for. */
  readonly raw?: true
  /** How large its body may be. */
  readonly size?: 'payload' | 'bulk'
}

export const route = <const R extends Route>(entry: R): R => entry

type Parsed<S> = S extends z.ZodType ? z.output<S> : Record<never, never>
type Sent<S> = S extends z.ZodType ? z.input<S> : Record<never, never>

export type Frozen<T> = T extends (infer I)[]
  ? readonly Frozen<I>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T

export type ParamsOf<R extends Route> = Parsed<R['params']>
export type QueryOf<R extends Route> = Parsed<R['query']>
export type BodyOf<R extends Route> = Parsed<R['body']>
export type AnswerOf<R extends Route> = Frozen<z.output<R['answer']>>
/** As callers write them, before defaults are filled in. */
export type SentQueryOf<R extends Route> = Frozen<Sent<R['query']>>
export type SentBodyOf<R extends Route> = Frozen<Sent<R['body']>>
