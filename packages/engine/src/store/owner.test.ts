import Database from 'better-sqlite3'
import {
  existsSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keep } from './keep.ts'
import { own, takeFile } from './owner.ts'

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

const place = (): string => {
  const folder = mkdtempSync(path.join(tmpdir(), 'leasehold-own-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('OPS-08 RUN-11 a file has one owner by whatever symbolic link it is reached, also one that is still to be made', () => {
  const folder = place()
  const [file, link] = [path.join(folder, 'work.db'), path.join(folder, 'link.db')]
  symlinkSync('work.db', link)
  const first = own(link, 'the first')
  expect(path.basename(first.file)).toBe('work.db')
  expect(() => own(file, 'the second')).toThrow(
    expect.objectContaining({
      code: 'owned_elsewhere',
      message: expect.stringContaining('the first') as string,
    }),
  )
  first.release()
  own(file, 'the second').release()
})

test('OPS-08 RUN-11 a file under two hard links is refused, since each would have a log of its own', () => {
  const folder = place()
  const [file, twin] = [path.join(folder, 'work.db'), path.join(folder, 'twin.db')]
  writeFileSync(file, '')
  linkSync(file, twin)
  for (const each of [file, twin])
    expect(() => own(each, 'me')).toThrow(
      expect.objectContaining({
        code: 'store_unavailable',
        message: expect.stringContaining('hard links') as string,
      }),
    )
})

test('OPS-08 a lock that is damaged is said to be that, and not an owner', () => {
  const file = path.join(place(), 'work.db')
  writeFileSync(`${file}.owner`, 'no database at all, and longer than a header would be'.repeat(4))
  expect(() => own(file, 'me')).toThrow(expect.objectContaining({ code: 'store_damaged' }))
})

test('RAIL-18 a database of another program is refused with not a byte of it changed, and nothing is left beside it', () => {
  const file = path.join(place(), 'theirs.db')
  const theirs = keep(new Database(file))
  theirs.exec('create table migrations (version text); create table customers (id int)')
  theirs.close()
  const before = readFileSync(file)
  expect(() => takeFile(file, 'me')).toThrow(expect.objectContaining({ code: 'not_a_database' }))
  expect(readFileSync(file).equals(before)).toBe(true)
  expect(
    [`${file}.owner`, `${file}-wal`, `${file}-shm`].filter((each) => existsSync(each)),
  ).toEqual([])
})
