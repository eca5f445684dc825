import { expect, test } from 'vitest'
import type { Strike } from './order.ts'
import { oneOf, orderOf } from './order.ts'

const kinds = ['a', 'b', 'c', 'd'] as const

const first = (seed: number, count: number): Strike[] => {
  const order = orderOf(seed, kinds, [10, 20])
  return Array.from({ length: count }, () => order.next().value)
}

test('PROOF-08 one seed is one order of strikes, another seed another', () => {
  expect(first(7, 40)).toEqual(first(7, 40))
  expect(first(8, 40)).not.toEqual(first(7, 40))
})

test('every kind strikes once in each round, after a pause within the pace', () => {
  const order = first(1, 40)
  for (let round = 0; round < 40; round += 4)
    expect(new Set(order.slice(round, round + 4).map(({ kind }) => kind)).size).toBe(4)
  expect(order.every(({ afterMs }) => afterMs >= 10 && afterMs <= 20)).toBe(true)
})

test('who is struck is one of those that there are, and nobody to strike is said', () => {
  expect([0, 0.49, 0.5, 1].map((at) => oneOf(['x', 'y'], at))).toEqual(['x', 'x', 'y', 'y'])
  expect(() => oneOf([], 0.5)).toThrow('nobody')
})
