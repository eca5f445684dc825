import { expect, test } from 'vitest'
import { isInstalled } from './bootstrap.mjs'

const lock = {
  packages: {
    '': { version: '0.0.0' },
    'packages/engine': { version: '0.1.0' },
    'node_modules/zod': { version: '4.0.0', integrity: 'sha512-a' },
    'node_modules/only-on-windows': { version: '1.0.0', integrity: 'sha512-b', optional: true },
  },
}

test('what the lock file names counts as installed, save the parts for other platforms', () => {
  const there = { packages: { 'node_modules/zod': { version: '4.0.0', integrity: 'sha512-a' } } }
  expect(isInstalled(lock, there)).toBe(true)
})

test('a missing folder, a missing package and another version all ask for an install', () => {
  const older = { packages: { 'node_modules/zod': { version: '3.0.0', integrity: 'sha512-c' } } }
  expect(isInstalled(lock, undefined)).toBe(false)
  expect(isInstalled(lock, { packages: {} })).toBe(false)
  expect(isInstalled(lock, older)).toBe(false)
})
