import { expect, test } from 'vitest'
import { findWords, readGlossary } from './words.ts'

const words = readGlossary(`# Words

## Checked words

| do not write | write    |
| ------------ | -------- |
| worker       | executor |
| dequeue      | claim    |

## Let through

- \`node:worker_threads\` is a module of Node

## Spelling

| heartbeat | not a checked word here |
`)

const found = (text: string): string[] => findWords('a.ts', text, words).map((one) => one.text)

test('a banned word is found in names, comments and prose, in any case and form', () => {
  expect(found('const workerId = 1')).toEqual(['"worker": write "executor"'])
  expect(found('const run_worker = startWorkers()')).toHaveLength(2)
  expect(found('// it dequeues and dequeued')).toHaveLength(2)
  expect(found('WORKER_ID')).toHaveLength(1)
})

test('longer words, phrases let through and tables of other sections are left alone', () => {
  expect(found("import { x } from 'node:worker_threads'")).toEqual([])
  expect(found('workers-comp is found, coworker is not')).toHaveLength(1)
  expect(words.banned.has('heartbeat')).toBe(false)
})

test('a finding names its line', () => {
  expect(findWords('a.ts', 'one\ntwo worker', words)[0]?.line).toBe(2)
})
