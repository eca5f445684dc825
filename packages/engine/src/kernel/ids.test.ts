import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { idOf, mintIds } from './ids.ts'
import { seededRandom } from './random.ts'
import type { Time } from './time.ts'

const clock = (instants: readonly number[]): Time => {
  let at = 0
  const now = (): number => instants[Math.min(at++, instants.length - 1)] ?? 0
  return { now, mono: now }
}

describe('RUN-18 ids', () => {
  it('RUN-18 carry their noun and sort by their making, also when the clock falls back', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_050 }), { minLength: 2 }),
        (instants) => {
          const ids = mintIds(clock(instants), seededRandom(1))
          const made = instants.map(() => ids.next('run'))
          expect([...made].sort()).toEqual(made)
          expect(new Set(made).size).toBe(made.length)
          expect(made.every((id) => /^run_[0-9a-v]{19}$/.test(id))).toBe(true)
        },
      ),
    )
  })

  it('RUN-18 stay apart and in order past the counter of one millisecond', () => {
    const ids = mintIds(clock([1_700_000_000_000]), seededRandom(7))
    const made = Array.from({ length: 33_000 }, () => ids.next('cmd'))
    expect(new Set(made).size).toBe(made.length)
    expect([...made].sort()).toEqual(made)
  })

  it('RUN-18 of two processes in the same millisecond differ by chance', () => {
    const time = clock([1_700_000_000_000])
    expect(mintIds(time, seededRandom(1)).next('run')).not.toBe(
      mintIds(time, seededRandom(2)).next('run'),
    )
  })

  it('PROOF-01 are the same for the same clock and seed', () => {
    const made = (): string[] => {
      const ids = mintIds(clock([5, 6, 6, 7]), seededRandom(3))
      return [ids.next('run'), ids.next('ses'), ids.next('run')]
    }
    expect(made()).toEqual(made())
  })
})

it('RAIL-16 an id that follows from an instant and a text is the same each time, and sorts by the instant', () => {
  const at = Date.UTC(2026, 0, 1)
  expect(idOf('run', at, 'sch_1/1')).toBe(idOf('run', at, 'sch_1/1'))
  expect(idOf('run', at, 'sch_1/1')).not.toBe(idOf('run', at, 'sch_2/1'))
  expect(idOf('run', at, 'sch_1/1')).toHaveLength(
    mintIds({ now: () => at, mono: () => 0 }, seededRandom(1)).next('run').length,
  )
  expect(idOf('run', at, 'b') < idOf('run', at + 1, 'a')).toBe(true)
})
