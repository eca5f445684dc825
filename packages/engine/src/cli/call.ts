// What a command is given: its arguments, its options, where it writes, and what the configuration is read from.
import type { Sources } from './config/sources.ts'
import type { Output } from './output.ts'

export interface Call<Options extends object = object> {
  readonly args: readonly string[]
  readonly options: Options & { readonly json?: boolean }
  readonly out: Output
  readonly sources: Sources
}

/** Answers the exit code. */
export type Run<Options extends object = object> = (call: Call<Options>) => Promise<number>
