// `ctx.map`: a body for each item, in a scope of its own, so many at once.
import { LeaseholdError } from '../../kernel/errors.ts'
import { shown } from '../../kernel/json.ts'
import type { MembersOf } from '../../kernel/known-members.ts'
import { mustKnowMembers } from '../../kernel/known-members.ts'
import type { Context, MapOptions, Settled } from './context.ts'
import { failureOf, StepError } from './failure.ts'
import { mustBeFunction } from './given.ts'
import type { Scope } from './scope.ts'

const MAP_OPTIONS: MembersOf<MapOptions<unknown>> = { key: true, concurrency: true }

/** `all`: every item is tried; else none is begun once one has failed. */
export const eachOf = async <T, O>(
  scope: Scope,
  name: string,
  items: readonly T[],
  body: (ctx: Context, item: T, index: number) => Promise<O>,
  options: MapOptions<T>,
  all: boolean,
): Promise<Settled<O>[]> => {
  mustKnowMembers(options, MAP_OPTIONS, `the map ${shown(name)}`, 'invalid_request')
  mustBeFunction(body, `the body of the map ${shown(name)}`, 'invalid_request')
  if (!Array.isArray(items))
    throw new LeaseholdError(
      'invalid_request',
      `the items of the map ${shown(name)} are ${shown(items)}; expected a list`,
    )
  scope.keyFor(name, 'map')
  const { concurrency = 16 } = options
  // what is no number would begin nothing and look like an empty list
  if (typeof concurrency !== 'number' || !(concurrency >= 1))
    throw new LeaseholdError(
      'invalid_config',
      `the concurrency of the map ${name} is ${String(concurrency)}; expected a number of 1 or more`,
    )
  const keys = items.map((item, i) => String(options.key ? options.key(item, i) : i))
  const twice =
    keys.find((key, i) => keys.indexOf(key) !== i && keys.length < 2_000) ??
    (new Set(keys).size === keys.length ? undefined : 'a key')
  if (twice !== undefined)
    throw new LeaseholdError(
      'duplicate_name',
      `two items of the map ${name} have the key ${twice}; give each its own`,
      { name, key: twice },
    )
  const results: Settled<O>[] = []
  let next = 0
  let failed = false
  const drive = async (): Promise<void> => {
    for (;;) {
      const i = next++
      if (i >= items.length || (failed && !all)) return
      const { run } = scope.inner([name, keys[i] ?? ''], (ctx) => body(ctx, items[i] as T, i))
      try {
        results[i] = { ok: true, value: await run() }
      } catch (error) {
        failed = true
        results[i] = {
          ok: false,
          error: error instanceof Error ? error : new StepError(failureOf(error)),
        }
      }
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, Math.min(concurrency, items.length)) }, drive))
  return results
}
