import { expect, test } from 'vitest'
import { withRows, withSection } from './proof-page.ts'

test('a section takes the place of the last one of its name, and leaves the other', () => {
  const first = withSection('', 'Planted bugs', ['one'])
  const both = withSection(first, 'A batch of worlds', ['five faults'])
  const again = withSection(both, 'Planted bugs', ['two'])
  expect(again).toContain('five faults')
  expect(again).toContain('two')
  expect(again).not.toContain('one\n')
  expect(again.indexOf('A batch')).toBeLessThan(again.indexOf('Planted'))
})

test('bugs that were hunted now take their places among those that were hunted before, in the order of all', () => {
  const before = ['bug    found by', 'a      S1 early', 'gone   S2', 'c      S3']
  const now = new Map([
    ['a', 'a S1 late'],
    ['b', 'b S4'],
  ])
  expect(withRows(before, now, ['a', 'b', 'c', 'never'])).toEqual([
    'a S1 late',
    'b S4',
    'c      S3',
  ])
})
