// What the answer to a route is given, and what it may answer. One function a route, in the files beside this one.
import type { AttemptGrant } from '../../kernel/attempt-token.ts'
import type { Family } from '../../kernel/meters.ts'
import type { Outcome } from '../../kernel/outcome.ts'
import type { Received } from '../../model/signature.ts'
import type { ExecutorPort } from '../../model/work.ts'
import type { Adoptions } from './adoptions.ts'
import type { AnswerOf, BodyOf, ParamsOf, QueryOf, Route } from '../../protocol/route.ts'
import type { RouteName, Routes } from '../../protocol/routes.ts'
import type { Command, Transition } from './commands.ts'
import type { Engine } from '../engine.ts'
import type { Source } from './event-stream.ts'
import type { InputCheck } from './input-check.ts'
import type { Secrets } from '../../queries/triggers.ts'

/** What all answers share. */
export interface Shared {
  readonly engine: Engine
  /** All databases of the store, in their order. */
  readonly engines: readonly Engine[]
  /** The executor port for sessions that live in other processes. */
  readonly port: ExecutorPort
  readonly adoptions: Adoptions
  readonly checkInput: InputCheck
  /** What senders of deliveries sign with, by the names that triggers have for it. */
  readonly secrets: Secrets
  /** Makes the sweep that takes back what dead sessions held look at once. */
  readonly reapSoon: () => void
  /** Figures of the process around the engine. */
  readonly figures: () => readonly Family[]
  readonly health: { draining(): boolean; inFlight(): number }
}

export interface Asked<R extends Route> {
  readonly params: ParamsOf<R>
  readonly query: QueryOf<R>
  readonly body: BodyOf<R>
  readonly actor: string
  /** The attempt that the caller’s token is for, where it has one of these. */
  readonly grant: AttemptGrant | null
  /** Aborted when the caller has left or the server stops. */
  readonly signal: AbortSignal
  /** What came, where the route takes it as it came. */
  readonly raw: Received
  readonly lastEventId: string | null
  readonly command: Command | null
  /** Does a transition, once for each `Idempotency-Key`. */
  once<T>(transition: Transition<T>): Promise<Outcome<T>>
  /** As `once`, on another engine of the same store. */
  onceAt<T>(engine: Engine, transition: Transition<T>): Promise<Outcome<T>>
  /** Answers server-sent events from a source. */
  stream(source: Source): Response
}

export type Reply<R extends Route> = Response | AnswerOf<R> | Outcome<AnswerOf<R>>

export type AnswersTo<N extends RouteName> = {
  readonly [K in N]: (asked: Asked<Routes[K]>) => Promise<Reply<Routes[K]>>
}
