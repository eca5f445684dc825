import { expect, test } from 'vitest'
import { withSection } from './proof-page.ts'

test('a section takes the place of the last one of its name, and leaves the other', () => {
  const first = withSection('', 'Planted bugs', ['one'])
  const both = withSection(first, 'A batch of worlds', ['five faults'])
  const again = withSection(both, 'Planted bugs', ['two'])
  expect(again).toContain('five faults')
  expect(again).toContain('two')
  expect(again).not.toContain('one\n')
  expect(again.indexOf('A batch')).toBeLessThan(again.indexOf('Planted'))
})
