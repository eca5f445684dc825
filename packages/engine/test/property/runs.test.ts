import fc from 'fast-check'
import { expect, it } from 'vitest'
import { broken } from '../support/crash.ts'
import { postgresUrl } from '../support/postgres.ts'
import { openStore } from '../support/store.ts'
import type { EndKind, Kind } from './model.ts'
import type { Command } from './world.ts'
import { World } from './world.ts'

const of = fc.nat(30)
const one = <T extends string>(value: T) => fc.constant(value)
/** True in `n` of ten. */
const sometimes = (n: number) => fc.nat(9).map((each) => each < n)
const ends = fc.oneof(
  { weight: 2, arbitrary: one<EndKind>('suspend') },
  { weight: 4, arbitrary: one<EndKind>('marker') },
  ...(['complete', 'fail', 'retry', 'shutdown', 'park'] as const).map((kind) => ({
    weight: 1,
    arbitrary: one<EndKind>(kind),
  })),
)
const weighted: [number, fc.Arbitrary<Command>][] = [
  [
    4,
    fc.record({
      do: one('start'),
      key: fc.option(fc.nat(2), { nil: null }),
      input: fc.nat(1),
      limited: sometimes(4),
      delayed: sometimes(1),
    }),
  ],
  [9, fc.record({ do: one('claim'), session: fc.nat(1), most: fc.integer({ min: 1, max: 3 }) })],
  [2, fc.record({ do: one('checkpoint'), hold: of })],
  [3, fc.record({ do: one('take'), hold: of })],
  [
    6,
    fc.record({
      do: one('record'),
      hold: of,
      kind: fc.constantFrom<Kind>('signal', 'time', 'approval'),
    }),
  ],
  [
    7,
    fc.record({
      do: one('stand'),
      hold: of,
      kind: fc.constantFrom<Kind>('signal', 'time', 'approval'),
    }),
  ],
  [2, fc.record({ do: one('bounce'), session: fc.nat(1), times: fc.integer({ min: 1, max: 4 }) })],
  [9, fc.record({ do: one('end'), hold: of, kind: ends })],
  [4, fc.record({ do: one('signal'), run: of, id: fc.nat(4) })],
  [2, fc.record({ do: one('decide'), run: of })],
  [1, fc.record({ do: one('cancel'), run: of })],
  [2, fc.record({ do: one('pause'), run: of })],
  [3, fc.record({ do: one('resume'), run: of })],
  [2, fc.record({ do: one('kill'), session: fc.nat(1) })],
  [1, fc.record({ do: one('close'), session: fc.nat(1) })],
  [5, fc.record({ do: one('wake'), ms: fc.nat(1_000) })],
  [3, fc.record({ do: one('admit') })],
]
const commands = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })))

// a sequence on PostgreSQL takes some ten times as long
const sequences = Number(process.env['LEASEHOLD_SEQUENCES'] ?? (postgresUrl() === null ? 300 : 40))

it(
  `RUN-02 RUN-03 RUN-07 RUN-09 RUN-12 RUN-14 RUN-16 RUN-17 RUN-18 RUN-28 RUN-29 RUN-30 SLOT-03 random commands leave each run as the model says, and break no invariant (${sequences} sequences)`,
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(commands, { minLength: 40, maxLength: 40 }), async (list) => {
        const world = new World(await openStore(), expect)
        try {
          for (const at of [0, 1]) await world.register(at)
          for (const command of list) {
            await world.run(command)
            world.check()
          }
          expect(await broken(world.t)).toEqual([])
        } finally {
          await world.t.close()
        }
      }),
      {
        numRuns: sequences,
        ...(process.env['LEASEHOLD_SEED'] === undefined
          ? {}
          : { seed: Number(process.env['LEASEHOLD_SEED']) }),
      },
    )
  },
  120_000 + sequences * 100,
)
