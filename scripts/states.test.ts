import { expect, test } from 'vitest'
import { isMachine, statesPage } from './states.ts'

const door = {
  name: 'door',
  states: ['open', 'shut', 'gone'],
  terminal: ['gone'],
  moves: {
    shut: { from: ['open'], to: ['shut'], why: 'it is cold' },
    slam: { from: ['open'], to: ['shut'], why: 'wind | anger' },
    remove: { from: ['open', 'shut'], to: ['gone'], why: 'it is sold' },
  },
}

test('a machine becomes one diagram and one table, moves between the same states on one arrow', () => {
  const page = statesPage([door])
  expect(page).toContain('  open --> shut: shut, slam\n')
  expect(page).toContain('  shut --> gone: remove\n')
  expect(page).toContain('  gone --> [*]\n')
  expect(page).toContain('| `remove` | `open`, `shut` | `gone` | it is sold |')
  expect(page).toContain('wind \\| anger')
})

test('a move that keeps the state leads from each of its states to that state alone', () => {
  const paint = { from: ['open', 'shut'], to: 'same' as const, why: 'it is old' }
  const page = statesPage([{ ...door, moves: { paint } }])
  expect(page).toContain('  open --> open: paint\n  shut --> shut: paint\n')
  expect(page).not.toContain('open --> shut')
  expect(page).toContain('| `paint` | `open`, `shut` | stays | it is old |')
})

test('machines come in the order of their names, however they were found', () => {
  const attic = { ...door, name: 'attic' }
  expect(statesPage([door, attic])).toBe(statesPage([attic, door]))
})

test('only what has states and moves is a machine', () => {
  expect(isMachine(door)).toBe(true)
  expect(isMachine({ states: [] })).toBe(false)
  expect(isMachine(null)).toBe(false)
  expect(isMachine(() => door)).toBe(false)
})
