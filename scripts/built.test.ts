import { expect, test } from 'vitest'
import { isStale } from './built.ts'

test('a build is stale when it is missing or older than any source', () => {
  expect(isStale([1, 2], [3])).toBe(false)
  expect(isStale([1, 4], [3])).toBe(true)
  expect(isStale([], [undefined])).toBe(true)
})
