// All that happens to runs while work flows, once: for tests that look at the statements it asks.
import { queueNamed } from '../../src/queries/queues.ts'
import type { TestStore } from './store.ts'
import { definition, entry } from './store.ts'

/** Tables that grow with history, and the indexes of them that do not: what is due, held, in line or open. */
export const GROWING = ['runs', 'steps', 'attempts', 'waits', 'signals', 'events']
export const BOUNDED = [
  'runs_held',
  'runs_slot',
  'runs_children',
  'runs_suspect',
  'runs_line_owner',
  'runs_line_global',
  'runs_line_a',
  'runs_line_b',
  'waits_children',
]

/** Starts, claims, checkpoints, ends, hand-backs, renewals, deaths and all sweeps. */
export const walkHotPath = async (test: TestStore): Promise<void> => {
  const limits = [{ key: 'tenant:{tenant}', value: 2 }]
  const session = await test.session({
    definitions: [definition('w'), definition('limited', { limits })],
  })
  await Promise.all(Array.from({ length: 20 }, () => test.start('w')))
  await test.start('w', { key: 'k', owner: 'ana' })
  await test.start('w', { key: 'k', owner: 'ana' })
  for (let i = 0; i < 4; i++) await test.start('limited', { input: '{"tenant":"t"}' })
  const [first, second, third, fourth] = await session.claim(4)
  if (!first || !second || !third || !fourth) throw new Error('four runs were not claimed')
  await Promise.all([
    session.checkpoint(first, 'a', 'b'),
    session.write(second, { entries: [entry(1)], end: { kind: 'complete', output: '1' } }),
    session.end(third, { kind: 'hand_back', reason: 'shutdown' }),
    session.write(fourth, {
      waits: [{ key: 'late', kind: 'time', dueInMs: 1 }],
      end: { kind: 'suspend', keys: ['late'] },
    }),
  ])
  const chained = await session.claim(1)
  for (const run of chained)
    await session.end(run, { kind: 'hand_back', reason: 'chain', toEnd: true, ifWaiting: ['w'] })
  await session.renew({
    held: { claim: session.claimNo, digest: '' },
    letGo: chained.map(({ run, attempt }) => ({ run, attempt, reason: 'lease_lost' })),
  })
  await test.engine.idle()
  // as an autoscaler asks, every few seconds
  await test.engine.read((tx) => queueNamed(tx, 'default'))
  test.later(2_000)
  await test.pass()
  await test.kill(session)
  await test.pass()
}
