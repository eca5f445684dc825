// The commands of which random sequences are made, each as often as makes sequences come far.
import fc from 'fast-check'
import type { EndKind, Kind } from './model.ts'
import type { Command } from './world.ts'

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
/** One command, as random as it may be: what it names that is not there it takes round the corner. */
export const commands: fc.Arbitrary<Command> = fc.oneof(
  ...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })),
)
