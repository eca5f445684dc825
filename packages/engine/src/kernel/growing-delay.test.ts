import { expect, test } from 'vitest'
import { growingDelayMs } from './growing-delay.ts'

const delays = (growth: Parameters<typeof growingDelayMs>[1], failures: readonly number[]) =>
  failures.map((each) => growingDelayMs(each, growth))

test('a delay doubles up to its longest, and stays there however often it fails', () => {
  expect(delays({ firstMs: 100, maxMs: 1_000 }, [1, 2, 3, 4, 5, 6])).toEqual([
    100, 200, 400, 800, 1_000, 1_000,
  ])
  expect(delays({ firstMs: 100, maxMs: 1_000 }, [1e3, 1e6])).toEqual([1_000, 1_000])
})

test('a delay grows by the factor that is named, and not at all by 1', () => {
  expect(delays({ firstMs: 10, maxMs: 1_000, factor: 3 }, [1, 2, 3])).toEqual([10, 30, 90])
  expect(delays({ firstMs: 10, maxMs: 1_000, factor: 1 }, [1, 2, 3])).toEqual([10, 10, 10])
})

test('a first delay of nothing stays nothing, and one above the longest is the longest', () => {
  expect(delays({ firstMs: 0, maxMs: 1_000 }, [1, 1e6])).toEqual([0, 0])
  expect(delays({ firstMs: 5_000, maxMs: 1_000 }, [1, 2])).toEqual([1_000, 1_000])
})
