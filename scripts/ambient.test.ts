import { expect, test } from 'vitest'
import { findAmbient, isEdge } from './ambient.ts'

const count = (text: string): number => findAmbient('a.ts', text).length

test.each([
  'const t = Date.now()',
  'const d = new Date()',
  'const d = new Date',
  'const r = Math.random()',
  'setTimeout(f, 1)',
  'globalThis.setInterval(f, 1)',
  'const ports = { setImmediate }',
  'const later = setTimeout',
  'crypto.randomUUID()',
  'globalThis.crypto.randomUUID()',
  'const home = process.env.HOME',
  'performance.now()',
  "import { randomUUID } from 'node:crypto'",
  "import { setTimeout as sleep } from 'node:timers/promises'",
  "import * as crypto from 'node:crypto'",
])('found: %s', (text) => {
  expect(count(text)).toBeGreaterThan(0)
})

test.each([
  'const d = new Date(at)',
  'const d = tx.now',
  'type Timers = { setTimeout: () => void }',
  'timers.setTimeout(f, 1)',
  'const timers = { setTimeout: later }',
  "import { createHash } from 'node:crypto'",
  "import type { Hash } from 'node:crypto'",
  '// Date.now() in a comment',
])('left alone: %s', (text) => {
  expect(count(text)).toBe(0)
})

test('the edges, where the ports get their system versions, are free', () => {
  expect(isEdge('packages/engine/src/kernel/time.ts')).toBe(true)
  expect(isEdge('packages/engine/src/orchestrator/main.ts')).toBe(true)
  expect(isEdge('packages/engine/src/orchestrator/http/handler.ts')).toBe(false)
})
