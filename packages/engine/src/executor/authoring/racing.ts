// Branches of which one decides: `ctx.race` by its first end, `ctx.any` by its first success. What the others stand at is
// closed in the same write that records the winner.
import { LeaseholdError } from '../../kernel/errors.ts'
import { shown } from '../../kernel/json.ts'
import { mustBeBranches } from './given.ts'
import type { Bodies, Scope } from './scope.ts'

export const compete = async (
  scope: Scope,
  name: string,
  branches: Bodies,
  decide: 'first' | 'success',
): Promise<{ winner: string; value: unknown }> => {
  const { driver } = scope.env
  mustBeBranches(branches, shown(name))
  const key = scope.keyFor(name, decide === 'first' ? 'race' : 'any')
  if (Object.keys(branches).length === 0)
    throw new LeaseholdError(
      'invalid_request',
      `${name} has no branches, so that none could ever win; give it one at least`,
    )
  const scopes = Object.entries(branches).map(([branch, body]) => ({
    branch,
    ...scope.inner([name, branch], body),
  }))
  const failures: unknown[] = []
  return new Promise((resolve, reject) => {
    let decided = false
    const settle = (winner: string, ok: boolean, value: unknown): void => {
      if (decided) return
      if (!ok && decide === 'success') {
        failures.push(value)
        if (failures.length < scopes.length) return
      }
      decided = true
      const closes = scopes
        .filter(({ branch }) => branch !== winner)
        .flatMap(({ prefix }) => driver.closeScope(prefix, key))
      void scope
        .ask(key, 'race', (_live, branch) => {
          branch.state = 'body'
          const output = JSON.stringify({ winner })
          driver.ready({ key, kind: 'race', output, error: null, closes })
        })
        .then(() => {
          if (ok) resolve({ winner, value })
          else
            reject(
              decide === 'success'
                ? new AggregateError(failures, `no branch of ${name} succeeded`)
                : value,
            )
        })
    }
    for (const { branch, run } of scopes)
      run().then(
        (value) => settle(branch, true, value),
        (error: unknown) => settle(branch, false, error),
      )
  })
}
