// A transition answers with a value: it went through, or it was refused. A refusal is part of the contract, not an error.
import type { RefusalCode } from './codes.ts'

export interface Refusal {
  readonly ok: false
  readonly code: RefusalCode
  /** What was found, what was expected, what to do. */
  readonly message: string
  /** The facts behind the message: the status found, the holder, the winner's decision. */
  readonly detail: Readonly<Record<string, unknown>>
}

export type Outcome<T> = ({ readonly ok: true } & T) | Refusal

export const refuse = (
  code: RefusalCode,
  message: string,
  detail: Readonly<Record<string, unknown>> = {},
): Refusal => ({
  ok: false,
  code,
  message,
  detail,
})
