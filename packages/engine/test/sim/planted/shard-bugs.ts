// Bugs of one line in what makes several databases one store, hunted in worlds of two of them.
import type { Bug } from './bugs.ts'

const bug = (
  name: string,
  file: string,
  find: string,
  replace: string,
  why: string,
  also?: Bug['also'],
): Bug => ({ name, file, find, replace, why, ...(also ? { also } : {}) })

export const shardBugs: readonly Bug[] = [
  bug(
    'shard-end-astray',
    'store/consequences.ts',
    "withTail(run, '_end')",
    '`${run}_end`',
    'RUN-33 what runs at the end of a run has an id that leads elsewhere',
    { file: 'model/start.ts', find: 'if (named !== number)', replace: 'if (named > 1_000)' },
  ),
  bug(
    'shard-of-id',
    'orchestrator/shards/shards.ts',
    "const shard = shardOfOwner(command.owner ?? '', count)\n    const said",
    'const shard = shardOfOwner(command.id, count)\n    const said',
    'RUN-18 the id decides where a run is, and a key names two',
    { file: 'model/start.ts', find: 'return !fresh || own === number', replace: 'return true' },
  ),
  bug(
    'shard-child-elsewhere',
    'executor/authoring/children.ts',
    "besideOf(scope.env.driver.claimed.run, scope.env.ports.ids.next('run'))",
    "scope.env.ports.ids.next('run')",
    'RAIL-07 a child has an id of another shard than its parent, which is refused for ever',
  ),
  bug(
    'shard-whole-limit',
    'orchestrator/shards/shard-port.ts',
    'value: shareOf(limit.value, { number, count }),',
    'value: limit.value,',
    'SLOT-03 each shard gives the whole of a limit',
  ),
  bug(
    'shard-retry-elsewhere',
    'orchestrator/shards/shards.ts',
    'id: besideOf(command.run, command.id)',
    'id: command.id',
    'RUN-18 a retry is stored under an id that leads elsewhere',
    { file: 'model/start.ts', find: 'if (named !== number)', replace: 'if (named > 1_000)' },
  ),
]
