import { expect, test } from 'vitest'
import { summary } from './test.ts'

test('tests are counted, and a file that could not be loaded counts as one failure', () => {
  const loaded = { status: 'passed', assertionResults: [{}, {}] }
  const broken = { status: 'failed', assertionResults: [] }
  const counts = { numPassedTests: 2, numFailedTests: 0 }
  expect(summary({ ...counts, testResults: [loaded] })).toBe('2 passed, 0 failed')
  expect(summary({ ...counts, testResults: [loaded, broken] })).toBe('2 passed, 1 failed')
})
