// Which version of a workflow new runs start on. Runs that have started keep theirs.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { finish } from '../store/sql.ts'
import { setCurrentVersion } from '../store/tables/definitions.ts'

export function* setCurrent(
  _tx: Tx,
  workflow: string,
  version: string,
): Steps<{ answer: Outcome<{ name: string; currentVersion: string }>; follow: Follow }> {
  const [set] = yield* finish(setCurrentVersion(workflow, version))
  return {
    answer:
      set.length > 0
        ? { ok: true, name: workflow, currentVersion: version }
        : refuse('unknown_workflow', `${workflow} has no version ${version}`, {
            workflow,
            version,
          }),
    follow: nothing(),
  }
}
