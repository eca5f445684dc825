import { expect, it } from 'vitest'
import { drawOf, numberOf, uuidOf } from './random.ts'

it('RUN-26 draws of many seeds do not meet, and are the same everywhere', () => {
  const drawn = new Set<string>()
  for (let run = 0; run < 100_000; run++) drawn.add(uuidOf(drawOf(`run_${run}#`, 1)))
  expect(drawn.size).toBe(100_000)
  expect(uuidOf(drawOf('run_1#', 1))).toBe(uuidOf(drawOf('run_1#', 1)))
  expect(uuidOf(drawOf('run_1#', 1))).not.toBe(uuidOf(drawOf('run_1#', 2)))
})

it('RUN-26 a number is of 53 bits in [0, 1)', () => {
  expect(numberOf(new Uint8Array(16))).toBe(0)
  expect(numberOf(new Uint8Array(16).fill(0xff))).toBe(1 - 2 ** -53)
  const mean = Array.from({ length: 10_000 }, (_, n) => numberOf(drawOf('seed', n)))
  expect(mean.reduce((sum, each) => sum + each, 0) / mean.length).toBeCloseTo(0.5, 1)
})
