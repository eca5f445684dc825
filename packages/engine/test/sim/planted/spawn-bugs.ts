// Bugs of one line in what starts executors, hunted in worlds of spawners.
import type { Bug } from './bugs.ts'

const bug = (name: string, file: string, find: string, replace: string, why: string): Bug => ({
  name,
  file,
  find,
  replace,
  why,
})

export const spawnBugs: readonly Bug[] = [
  bug(
    'spawn-one-more',
    'model/spawn.ts',
    'if (open >= max)',
    'if (open > max)',
    'OPS-05 one more than the most is started',
  ),
  bug(
    'spawn-hot',
    'model/spawn.ts',
    'if (within(now, lastAt, cooldownMs))',
    'if (within(now, lastAt, cooldownMs / 4))',
    'OPS-05 the next is started before the cooldown is over',
  ),
  bug(
    'spawn-no-backoff',
    'model/spawn.ts',
    'if (within(now, failedAt, backoffMs))',
    'if (failures > 5 && within(now, failedAt, backoffMs))',
    'OPS-05 what came to nothing is tried again at once',
  ),
  bug(
    'spawn-silent',
    'store/tables/spawns.ts',
    'or (s.id is null and p.start_by + $1 <= {now})',
    'or (s.id is null and p.start_by + $1 * 1000 <= {now})',
    'OPS-05 one that never came, and of which nobody tells, is never settled',
  ),
  bug(
    'spawn-given-up-early',
    'store/tables/spawns.ts',
    'p.start_by + $1 <= {now}',
    'p.asked_at + $1 / 20 <= {now}',
    'OPS-05 one is said never to come, and comes',
  ),
  bug(
    'spawn-evidence-unheard',
    'transitions/settle-spawn.ts',
    'return { found: true, ...(yield* endOnEvidence(tx, session, evidence)) }',
    'return { found: true, ended: false, follow: nothing() }',
    'RUN-11 the end of a process is reported, and what it held waits for its lease',
  ),
  bug(
    'spawn-outlives',
    'executor/spawning/spawner.ts',
    'for (const child of children.values()) end(child)\n    stopBy',
    'stopBy',
    'OPS-05 what was started outlives its spawner',
  ),
  bug(
    'spawn-told-for-gone',
    'executor/spawning/spawner.ts',
    '    child.executor.tell()\n',
    "    child.executor.tell()\n    for (const [session, each] of children) if (each === child) follow(settle(session, 'it was told'))\n",
    'OPS-05 one that was told to stop is settled as if it were gone',
  ),
]
