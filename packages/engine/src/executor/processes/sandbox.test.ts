import { expect, test } from 'vitest'
import { mustIsolate } from '../authoring/isolation.ts'
import { sandboxed, whyNoSandbox } from './sandbox.ts'

const STRICT = { network: false, writable: [] }

const sandboxOf = (sandbox: unknown) => mustIsolate('w', { kind: 'process', sandbox } as never)

test.each([
  [1, 'sandbox is 1; expected true, false, or { network, writable }'],
  [null, 'sandbox is null; expected true, false, or { network, writable }'],
  [['/tmp'], 'sandbox is ["/tmp"]; expected true, false, or { network, writable }'],
  [{ network: 'no' }, 'sandbox.network is "no"; expected true or false'],
  [{ writable: ['out'] }, 'sandbox.writable is ["out"]; expected absolute paths of folders'],
  [{ writable: '/out' }, 'sandbox.writable is "/out"; expected absolute paths of folders'],
])('EX-24 a sandbox of %j is refused where it is written', (sandbox, why) => {
  expect(() => sandboxOf(sandbox)).toThrow(`isolation of w: ${why}`)
})

test('EX-24 a sandbox is the strictest unless its author says otherwise', () => {
  expect(sandboxOf(undefined).sandbox).toBeNull()
  expect(sandboxOf(true).sandbox).toEqual(STRICT)
  expect(sandboxOf({}).sandbox).toEqual(STRICT)
  expect(sandboxOf({ network: true, writable: ['/out'] }).sandbox).toEqual({
    network: true,
    writable: ['/out'],
  })
})

test('EX-24 what an author opens is open, and nothing else', () => {
  const [, strict] = sandboxed(STRICT, 'node', ['a.js'])
  expect(strict).not.toContain('--share-net')
  expect(strict).not.toContain('--bind')
  expect(strict.slice(-3)).toEqual(['--', 'node', 'a.js'])
  const [, open] = sandboxed({ network: true, writable: ['/out'] }, 'node', ['a.js'])
  expect(open).toContain('--share-net')
  expect(open.slice(open.indexOf('--bind'), open.indexOf('--bind') + 3)).toEqual([
    '--bind',
    '/out',
    '/out',
  ])
})

test('EX-24 a host without bubblewrap says so', async () => {
  expect(await whyNoSandbox(STRICT, { PATH: '/nowhere' })).toBe(
    'there is no bwrap in its PATH; install the package bubblewrap',
  )
})
