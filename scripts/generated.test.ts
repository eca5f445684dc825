import { expect, test } from 'vitest'
import { isFresh } from './generated.ts'

test('a generated file is fresh only when it holds exactly what would be written', () => {
  expect(isFresh('a\r\nb\n', 'a\nb\n')).toBe(true)
  expect(isFresh('a\n', 'a\nb\n')).toBe(false)
  expect(isFresh(undefined, '')).toBe(false)
})
