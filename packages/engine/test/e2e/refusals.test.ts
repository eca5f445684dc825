// Commands that refuse: a sentence and an exit code, no stack, and nothing left behind.
import Database from 'better-sqlite3'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { called, folder, program } from './processes.ts'

const NO_STACK = /^(?![\s\S]*\n\s+at )/

test('OPS-06 a version of a workflow is asked for by --to-version; --version is refused, and nothing is started', async () => {
  const { code, out, err } = await called(['start', 'w', '--version', '99'], { cwd: folder() })
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toMatch(/unknown option '--version'/)
})

test('OPS-06 a server that may not listen makes no store', async () => {
  const cwd = folder()
  const before = readdirSync(cwd)
  const taken = createServer()
  await new Promise<void>((resolve) => void taken.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void taken.close())
  const { port } = taken.address() as AddressInfo
  const busy = await called(['serve', '--port', String(port)], { cwd })
  expect(busy).toMatchObject({ code: 2, err: expect.stringContaining('EADDRINUSE') as string })
  const open = await called(['serve', '--host', '0.0.0.0', '--port', '0'], { cwd })
  expect(open).toMatchObject({ code: 2, err: expect.stringContaining('token') as string })
  expect(readdirSync(cwd)).toEqual(before)
})

test('OPS-06 of a path that is mistyped nothing is made', async () => {
  const cwd = folder()
  const { code, err } = await called(['serve', '--file', 'dta/work/l.db', '--port', '0'], { cwd })
  expect(code).toBe(1)
  expect(err).toMatch(/dta is not there; make it, or name a file in a folder that is/)
  expect(err).not.toMatch(/Repeat/)
  expect(existsSync(path.join(cwd, 'dta'))).toBe(false)
})

test('OPS-06 what no repeat mends is not advised to be repeated', async () => {
  const cwd = folder()
  mkdirSync(path.join(cwd, 'folder.db'))
  for (const args of [
    ['serve', '--file', 'folder.db', '--port', '0'],
    ['doctor', '--after-restore', '--file', 'missing.db'],
  ]) {
    const { code, err } = await called(args, { cwd })
    expect(code).toBe(1)
    expect(err).toMatch(/; name /)
    expect(err).not.toMatch(/Repeat/)
  }
})

test('OPS-06 a project is not written where it cannot be, and that is said in a sentence', async () => {
  const cwd = folder()
  writeFileSync(path.join(cwd, 'file'), '')
  const { code, err } = await called(['init', 'file/project'], { cwd })
  expect(code).toBe(2)
  expect(err).toMatch(/file\/project cannot be written: .*name a folder where you may write/)
  expect(err).toMatch(NO_STACK)
})

test('OPS-06 a file and a database by flags are refused; a file by a flag beats a database of the environment', async () => {
  const cwd = folder()
  const database = 'postgres://nobody@127.0.0.1:1/none'
  const both = await called(['migrate', '--file', 'a.db', '--database', database], { cwd })
  expect(both).toMatchObject({
    code: 2,
    err: expect.stringMatching(/both given by flags/) as string,
  })
  const env = { LEASEHOLD_DATABASE: database }
  const { code, out } = await called(['migrate', '--file', 'a.db', '--json'], { cwd, env })
  expect({ code, there: existsSync(path.join(cwd, 'a.db')) }).toEqual({ code: 0, there: true })
  expect(out).toContain('0001_init.sql')
})

test('OPS-06 numbers out of their bounds are refused by the name of their option', async () => {
  for (const [args, says] of [
    [['runs', '--limit', '0'], /--limit is "0"; expected a whole number from 1 to 200/],
    [['notices', '--limit', '9999'], /--limit is "9999"; expected a whole number from 1 to 1000/],
    [['start', 'w', '--priority', '101'], /--priority is "101"; .* from -100 to 100/],
    [['logs', 'r', '--attempt', '0'], /--attempt is "0"; expected a whole number of 1 or more/],
    [['slots', 'k', '--set', '-1'], /--set is "-1"; expected a whole number of 0 or more/],
  ] as const) {
    const { code, err } = await called(args, { cwd: folder() })
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(says) as string })
  }
})

test('OPS-06 with --json an error is JSON on stderr, of the arguments too', async () => {
  const cwd = folder()
  const gone = await called(['runs', '--json', '--url', 'http://127.0.0.1:9'], { cwd })
  expect(gone.out).toBe('')
  expect(JSON.parse(gone.err)).toMatchObject({
    error: {
      code: 'peer_unreachable',
      message: expect.stringContaining('never connects to port 9') as string,
    },
  })
  const wrong = await called(['runs', '--json', '--limt', '3'], { cwd })
  expect(wrong.code).toBe(2)
  expect(JSON.parse(wrong.err)).toMatchObject({ error: { code: 'invalid_request' } })
})

test('OPS-06 what is secret and not there is shown as not there', async () => {
  const { out } = await called(['config'], { cwd: folder() })
  expect(out).toMatch(/^databases +- /m)
  expect(out).not.toContain('hidden')
})

test('RAIL-18 a store whose record of migrations has a hole, or lost its newest, is refused in a sentence', async () => {
  const cwd = folder()
  const file = path.join(cwd, 'a.db')
  const migrate = () => called(['migrate', '--file', file], { cwd })
  await migrate()
  const forget = (number: number): void => {
    const db = new Database(file)
    db.prepare('delete from migrations where number = ?').run(number)
    db.close()
  }
  forget(13)
  const newest = await migrate()
  expect(newest.err).toMatch(
    /migration 0013_replayed_from.sql cannot be applied: .*duplicate column name/,
  )
  expect(newest.err).toMatch(NO_STACK)
  forget(5)
  expect((await migrate()).err).toMatch(/later ones than 0005_line_of_owner.sql, and not that one/)
})

test('OPS-08 a file that may not be written is refused by its name, and nothing is left beside it', async () => {
  const cwd = folder()
  const data = path.join(cwd, 'data')
  mkdirSync(data)
  const file = path.join(data, 'a.db')
  await called(['migrate', '--file', file], { cwd })
  for (const name of readdirSync(data)) if (name !== 'a.db') chmodSync(path.join(data, name), 0o666)
  for (const each of [cwd, data]) chmodSync(each, 0o777)
  chmodSync(file, 0o444)
  const before = readdirSync(data).toSorted()
  // no mode keeps root from writing
  const root = process.getuid?.() === 0
  const { stderr, status } = spawnSync(process.execPath, [program, 'migrate', '--file', file], {
    cwd: '/',
    encoding: 'utf8',
    ...(root ? { uid: 65_534, gid: 65_534 } : {}),
  })
  expect(stderr).toMatch(/a\.db may not be read and written by this process \(EACCES\); allow it/)
  expect(status).toBe(1)
  expect(readdirSync(data).toSorted()).toEqual(before)
})
