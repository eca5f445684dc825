import { expect, test } from 'vitest'
import { besideOf, marked, shardOfId, shardOfOwner, shareOf, tooSmall, withTail } from './shard.ts'

test('RUN-18 an id without a mark is of the first shard, and a mark is set once', () => {
  expect(shardOfId('run_0k3v1hm2s001c4u8t1q')).toBe(0)
  expect(marked('run_a', 0)).toBe('run_a')
  expect(marked('run_a', 12)).toBe('run_a~12')
  expect(marked('run_a~12', 12)).toBe('run_a~12')
  expect(shardOfId('run_a~12')).toBe(12)
  // what only looks like a mark is part of the name
  for (const id of ['a~0', 'a~01', 'a~1234', 'a~x', '~1b']) expect(shardOfId(id)).toBe(0)
  expect(besideOf('run_a~3', 'run_b')).toBe('run_b~3')
  expect(besideOf('run_a', 'run_b')).toBe('run_b')
  expect(withTail('run_a~3', '_end')).toBe('run_a_end~3')
  expect(withTail('run_a', '_end')).toBe('run_a_end')
})

test('RUN-18 an owner is always on the same shard, and owners are spread', () => {
  const shards = Array.from({ length: 3_000 }, (_, i) => shardOfOwner(`owner ${i}`, 3))
  for (const shard of [0, 1, 2]) {
    const there = shards.filter((each) => each === shard).length
    expect(there).toBeGreaterThan(850)
    expect(there).toBeLessThan(1_150)
  }
  // the place of what is stored: another answer here would lose runs
  expect(shardOfOwner('ann', 2)).toBe(shardOfOwner('ann', 2))
  expect([shardOfOwner('', 2), shardOfOwner('ann', 5), shardOfOwner('bob', 5)])
    .toMatchInlineSnapshot(`
    [
      0,
      0,
      2,
    ]
  `)
})

test('SLOT-01 the shares of a limit add up to it', () => {
  for (const count of [1, 2, 3, 7])
    for (const value of [0, 1, 2, 5, 7, 100]) {
      const shares = Array.from({ length: count }, (_, number) => shareOf(value, { number, count }))
      expect(shares.reduce<number>((sum, each) => sum + (each ?? 0), 0)).toBe(value)
      expect(tooSmall(value, count)).toBe(value > 0 && shares.includes(0))
    }
  expect(shareOf(null, { number: 0, count: 2 })).toBeNull()
  expect(tooSmall(null, 2)).toBe(false)
})
