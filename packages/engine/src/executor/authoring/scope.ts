// One scope of a run: names used in it are its own. It asks the driver for the outcome of a name, and knows how a wait's
// outcome is read.
import { LeaseholdError } from '../../kernel/errors.ts'
import { decode } from '../../kernel/json.ts'
import { storedObject } from '../../kernel/stored.ts'
import type { EntryKind, LiveWait } from '../../model/work.ts'
import { KEY_MAX } from '../../model/indexed.ts'
import type { Codec } from './codec.ts'
import { plainCodec } from './codec.ts'
import type { Context } from './context.ts'
import type { Driver, Received } from '../driving/driver.ts'
import type { VerbsEnvironment } from './environment.ts'
import type { FailureData } from './failure.ts'
import { StepError } from './failure.ts'
import { escaped, mustKeep } from './names.ts'

export interface Standing {
  state: 'asked' | 'body' | 'wait'
}

export type Bodies = Readonly<Record<string, (ctx: Context) => Promise<unknown>>>

const never = (): Promise<never> => new Promise(() => undefined)

export class Scope {
  readonly env: VerbsEnvironment
  readonly prefix: string
  readonly #within: (env: VerbsEnvironment, prefix: string) => Context
  readonly #used = new Set<string>()

  /** `within` makes the context of a scope in this one. */
  constructor(
    env: VerbsEnvironment,
    prefix: string,
    within: (env: VerbsEnvironment, prefix: string) => Context,
  ) {
    this.env = env
    this.prefix = prefix
    this.#within = within
  }

  /** The key of a name, which is used from here on; throws where it cannot be. */
  keyFor(name: string, what: string): string {
    if (this.env.driver.over)
      throw new LeaseholdError(
        'late_call',
        `${what} was called after the function had ended; use the context only while it runs`,
      )
    if (this.env.begun.step !== null)
      throw new LeaseholdError(
        'nested_step',
        `${what} ${JSON.stringify(name)} was called inside the body of the step ${JSON.stringify(this.env.begun.step)}; call it from the function, beside that step`,
        { step: this.env.begun.step },
      )
    mustKeep(name, `the name of ${what}`)
    const key = this.prefix + escaped(name)
    const bytes = key.length * 3 > KEY_MAX ? Buffer.byteLength(key) : 0
    if (bytes > KEY_MAX)
      throw new LeaseholdError(
        'invalid_request',
        `${what} ${JSON.stringify(name)} has ${bytes} bytes with the names of the scopes around it; the limit is ${KEY_MAX}`,
        { limit: KEY_MAX },
      )
    if (this.#used.has(key))
      throw new LeaseholdError(
        'duplicate_name',
        `the name ${JSON.stringify(name)} is used twice in ${this.prefix === '' ? 'the run' : `the scope ${this.prefix}`}; give each its own, as in ${JSON.stringify(`${name}-2`)}, or use ctx.map or ctx.scope`,
        { name, scope: this.prefix },
      )
    this.#used.add(key)
    return key
  }

  /** Asks for an outcome; `look` says what to do while the journal holds none. */
  ask(
    key: string,
    kind: EntryKind,
    look: (live: LiveWait | undefined, branch: Standing) => void,
  ): Promise<Received> {
    if (this.env.driver.isClosed(key)) return never()
    return new Promise((resolve) => {
      const branch = {
        key,
        kind,
        state: 'asked' as Standing['state'],
        receive: resolve,
        look: (live: LiveWait | undefined) => look(live, branch),
      }
      this.env.driver.ask(branch)
    })
  }

  /** A branch that stands at a wait until it is satisfied or lapses. Of a time there is nothing to say but that it came. */
  waitFor(
    key: string,
    kind: 'time' | 'signal' | 'approval' | 'child',
    record: () => Parameters<Driver['record']>[0],
  ): Promise<Received> {
    const { driver } = this.env
    return this.ask(key, kind, (live, branch) => {
      branch.state = 'wait'
      if (!live) driver.record(record())
      else if (live.state === 'satisfied')
        driver.ready({
          key,
          kind,
          output: JSON.stringify({ came: true, value: decode(live.result) ?? null }),
          error: null,
        })
      else if (live.state === 'lapsed')
        driver.ready({
          key,
          kind,
          output: kind === 'time' ? null : JSON.stringify({ came: false }),
          error: null,
        })
    })
  }

  valueOf<T>(received: Received, codec: Codec = plainCodec): T {
    if (received.error !== null)
      throw new StepError(
        storedObject(received.error, 'the error of a step') as unknown as FailureData,
      )
    return codec.decode(received.output) as T
  }

  /** A value inside a wait's outcome, as its writer's codec means it. */
  revived(value: unknown, codec: Codec = this.env.codec): unknown {
    return codec === plainCodec ? value : codec.decode(JSON.stringify(value))
  }

  /** A scope in this one, and what runs in it. */
  inner<O>(
    names: readonly string[],
    body: (ctx: Context) => Promise<O>,
  ): { prefix: string; run: () => Promise<O> } {
    for (const name of names) mustKeep(name, `a name within ${names[0]}`)
    const prefix = `${this.prefix}${names.map(escaped).join(':')}/`
    // what a body throws before its first promise is its failure too
    return { prefix, run: async () => body(this.#within(this.env, prefix)) }
  }
}
