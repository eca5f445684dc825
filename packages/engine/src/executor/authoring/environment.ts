// What the verbs of one run are handed: its driver, the outside, and the policies of its workflow.
import type { Facts } from '../../kernel/log.ts'
import type { Ports } from '../../kernel/ports.ts'
import type { RetryPolicy } from '../../model/retry.ts'
import type { Codec } from './codec.ts'
import type { Driver } from '../driving/driver.ts'

/** Called around each body: tests replace or break it here, tracing measures it. */
export type AroundStep = (
  step: {
    readonly run: string
    readonly workflow: string
    readonly key: string
    readonly name: string
    readonly tryNumber: number
  },
  body: () => unknown,
) => unknown

export interface VerbsEnvironment {
  readonly around?: AroundStep
  readonly driver: Driver
  readonly ports: Ports
  /** What is kept with the attempt for people to read. */
  readonly log: { log(message: string, facts: Facts): void }
  readonly codec: Codec
  /** The step whose body is being called in this turn: its own calls of the context are refused. */
  readonly begun: { step: string | null }
  /** What the preparation of this attempt gave. */
  readonly prepared: unknown
  readonly generation: number
  readonly stepRetry: RetryPolicy
  readonly payloadMaxBytes: number
  readonly limitGraceMs: number
}
