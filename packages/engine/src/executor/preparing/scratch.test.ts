import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rm } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { isAlive, processBegan } from '../processes/host-process.ts'
import { systemScratch } from './scratch.ts'

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'leasehold-test-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}
const label = { session: 'ses_1', run: 'run_1', attempt: 2 }
/** A session's directory as a process of this identity would have left it. */
const left = (root: string, session: string, owner: unknown): string => {
  const directory = join(root, session, 'run_9.1')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'file'), 'x')
  writeFileSync(join(root, session, 'owner.json'), JSON.stringify(owner))
  return directory
}

const nobody = (): Promise<boolean> => Promise.reject(new Error('no process was noted'))

test('EX-16 each attempt has an empty directory of its own, which is refused a second time and can be removed', async () => {
  const root = folder()
  const scratch = systemScratch(root)
  const path = await scratch.make(label)
  expect(path).toBe(join(root, 'ses_1', 'run_1.2'))
  await expect(scratch.make(label)).rejects.toThrow(/EEXIST/)
  await expect(scratch.make({ ...label, attempt: 3 })).resolves.toMatch(/run_1\.3$/)
  writeFileSync(join(path, 'file'), 'x')
  await scratch.remove(path)
  expect(existsSync(path)).toBe(false)
})

test('EX-26 what sessions left whose processes are gone is removed at the next start, and nobody else’s', async () => {
  const root = folder()
  const own = await systemScratch(root).make(label)
  const began = await processBegan(process.pid)
  // given the same process id from an earlier boot, an id that nobody has, and two that cannot be judged
  const reused = left(root, 'ses_2', { pid: process.pid, began: `${began}0` })
  const gone = left(root, 'ses_3', { pid: 2 ** 22 + 1, began: '1' })
  const odd = left(root, 'ses_4', { pid: 'all', began: '1' })
  mkdirSync(join(root, 'ses_5', 'run_9.1'), { recursive: true })

  const { removed, held } = await systemScratch(root).recover('ses_9', nobody)

  expect([...removed].sort()).toEqual([reused, gone])
  expect(held).toEqual([])
  expect([own, reused, gone, odd].map((path) => existsSync(path))).toEqual([
    true,
    false,
    false,
    true,
  ])
  expect(existsSync(join(root, 'ses_5', 'run_9.1'))).toBe(true)
  expect(await systemScratch(join(root, 'nothing')).recover('ses_9', nobody)).toEqual({
    removed: [],
    held: [],
    alive: [],
  })
})

test('EX-15 EX-26 what a session noted that is gone is taken over by one other, and is its own until it is released', async () => {
  const root = folder()
  const scratch = systemScratch(root)
  const note = { workflow: 'w', version: '1', prepared: '{"id":7}' }
  await scratch.note(label, note)
  // given that its process is gone, and a note beside it that cannot be read
  writeFileSync(join(root, 'ses_1', 'owner.json'), JSON.stringify({ pid: 2 ** 22 + 1, began: '1' }))
  writeFileSync(join(root, 'ses_1', 'run_2.1.held.json'), '{')

  const both = await Promise.all([
    systemScratch(root).recover('ses_2', nobody),
    systemScratch(root).recover('ses_3', nobody),
  ])

  const held = both.flatMap((each) => each.held)
  expect(held.map((each) => each.label.run).sort()).toEqual(['run_1', 'run_2'])
  const mine = held.find((each) => each.label.run === 'run_1')
  expect(mine?.note).toEqual(note)
  if (mine) await scratch.forget(mine.label)
  expect(existsSync(join(root, mine?.label.session ?? '', 'run_1.2.held.json'))).toBe(false)
  expect(existsSync(join(root, 'ses_1'))).toBe(false)
})

test('EX-26 a scratch directory that is a link or no directory is refused', async () => {
  const root = folder()
  const link = join(root, 'link')
  symlinkSync(root, link)
  await expect(systemScratch(link).make(label)).rejects.toThrow(/no directory; expected/)
})

test('EX-26 a process is itself by its id and by when it began', async () => {
  const began = await processBegan(process.pid)
  expect(await isAlive({ pid: process.pid, began })).toBe(true)
  expect(await isAlive({ pid: process.pid, began: null })).toBe(true)
  expect(await isAlive({ pid: process.pid, began: 'another' })).toBe(began === null)
  expect(await isAlive({ pid: 2 ** 22 + 1, began: null })).toBe(false)
})

test('EX-26 a process that a dead session noted is ended before anything of its session is removed, and kept where it lives on', async () => {
  const root = folder()
  const scratch = systemScratch(root)
  const leader = { pid: 4242, began: '77' }
  const directory = await scratch.make(label)
  await scratch.noteProcess(label, leader)
  writeFileSync(join(root, 'ses_1', 'owner.json'), JSON.stringify({ pid: 2 ** 22 + 1, began: '1' }))
  const seen: unknown[] = []

  const stuck = await systemScratch(root).recover('ses_2', () => Promise.resolve(false))
  expect(stuck).toEqual({ removed: [], held: [], alive: [{ label, leader }] })
  expect(existsSync(directory)).toBe(true)

  const done = await systemScratch(root).recover('ses_3', (left) => {
    seen.push(left, existsSync(directory))
    return Promise.resolve(true)
  })
  expect(seen).toEqual([{ label, leader }, true])
  expect(done).toEqual({ removed: [directory], held: [], alive: [] })
  expect(existsSync(directory)).toBe(false)
})
