import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { own } from './owner.ts'

test('RUN-11 a file in a folder that cannot be written is refused by name, and not as owned by somebody', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'leasehold-own-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'missing', 'work.db')
  expect(() => own(file, 'me')).toThrow(
    expect.objectContaining({
      code: 'store_unavailable',
      message: expect.stringContaining(`${file}.owner cannot be opened`) as string,
    }),
  )
})
