// What the holder of each run is to be told and that stands on the rows: also what was said while nobody listened.
import type { Told } from '../model/work.ts'
import { ask } from '../store/sql.ts'
import { directivesOf } from '../store/tables/runs.ts'
import type { Engine } from './engine.ts'

export const standingDirectives = async (engine: Engine, session: string): Promise<Told[]> => {
  const standing = await engine.read(function* () {
    return (yield* ask(directivesOf(session)))[0]
  })
  return standing.map((run) => ({
    run: run.id,
    attempt: run.attempt,
    directive: run.status === 'canceling' ? 'cancel' : 'pause',
    note: run.note,
  }))
}
