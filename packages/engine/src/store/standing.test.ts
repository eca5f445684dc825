import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Fault } from '../kernel/errors.ts'
import { systemFiles } from '../kernel/files.ts'
import { virtualClock } from '../testing/clock.ts'
import type { Steps } from './sql.ts'
import { ask } from './sql.ts'
import type { SqliteStore } from './sqlite.ts'
import { openSqlite } from './sqlite.ts'
import type { Standing } from './standing.ts'
import { standing, whileStanding } from './standing.ts'

let folder: string
let store: SqliteStore
let stands: Standing
let lost: Fault[]
const clock = virtualClock(0)
const file = (): string => path.join(folder, 'store.db')
const later = (): void => clock.moveTo(clock.time.mono() + 1_000)

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'leasehold-'))
  store = openSqlite(file(), { time: clock.time, timers: clock.timers() })
  store.db.exec('create table t (n int)')
  writeFileSync(`${file()}.owner`, '')
  lost = []
  const onLost = (fault: Fault): void => void lost.push(fault)
  const settle = (): void => void store.db.pragma('wal_checkpoint(TRUNCATE)')
  stands = standing(file(), { place: file(), files: systemFiles, time: clock.time, settle, onLost })
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

function* answers(): Steps<number> {
  yield* ask()
  return 1
}

/** How many rows a file holds that nobody has open. */
const rowsIn = (at: string): unknown => {
  const db = new Database(at, { readonly: true })
  try {
    return db.prepare('select count(*) from t').pluck().get()
  } finally {
    db.close()
  }
}

describe('OPS-08 the file of a store', () => {
  it('OPS-08 is looked at once a second, and stands while nobody touches it', () => {
    for (let i = 0; i < 3; i++) {
      stands.check()
      later()
    }
    expect(lost).toEqual([])
  })

  it.each(['moved', 'replaced', 'deleted'])(
    'OPS-08 is missed when it is %s: all work is refused, once loudly, with what was found and expected',
    async (how) => {
      const away = path.join(folder, 'away.db')
      store.db.exec('insert into t values (1)')
      if (how === 'deleted') rmSync(file())
      else renameSync(file(), away)
      if (how === 'replaced') writeFileSync(file(), '')
      const asked = whileStanding(store, stands)
      expect(await asked.run(answers)).toBe(1)
      later()
      for (let i = 0; i < 2; i++)
        for (const doing of [asked.run, asked.read])
          await expect(doing(answers)).rejects.toMatchObject({
            code: 'store_moved',
            detail: { path: file() },
          })
      expect(lost.map(({ message }) => message)).toEqual([
        expect.stringMatching(
          how === 'replaced'
            ? /is another file \(expected file \d+:\d+, found \d+:\d+\)/
            : /is not there any more \(expected file \d+:\d+, found none\)/,
        ),
      ])
      // what was written stands in the file that was opened, wherever it is, without the log beside its old place
      if (how !== 'deleted') expect(rowsIn(away)).toBe(1)
    },
  )

  it.each(['-wal', '-shm', '.owner'])('OPS-08 is not complete without %s', (side) => {
    rmSync(`${file()}${side}`)
    later()
    expect(() => stands.check()).toThrow(`${file()}${side} is not there any more`)
    expect(rowsIn(file())).toBe(0)
  })

  it('OPS-08 that is put back is served again, and one that nobody may look at is not missed', () => {
    renameSync(file(), `${file()}2`)
    later()
    expect(() => stands.check()).toThrow(/moved/)
    renameSync(`${file()}2`, file())
    later()
    stands.check()
    const onLost = (fault: Fault): void => void lost.push(fault)
    let may = true
    const files = { identity: () => (may ? '1:1' : undefined) }
    const settle = (): void => {
      throw new Error('not lost')
    }
    const blind = standing(file(), { place: file(), files, time: clock.time, settle, onLost })
    may = false
    later()
    blind.check()
    expect(lost).toHaveLength(1)
  })
})
