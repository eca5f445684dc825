// `leasehold migrate --plan`: whole statements, each with whom it keeps waiting.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { program } from '../support/program.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'leasehold-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('RAIL-18 a plan shows each statement whole, in the words of its database, and says of a new index that nobody waits for it', async () => {
  const { code, out } = await program(['migrate', '--plan', '--file', 'new.db'], { cwd: folder })
  expect(code).toBe(0)
  const lines = out.trimEnd().split('\n')
  expect(lines).toContain('  create table arrivals: nobody waits, since it is new')
  expect(lines).toContain(
    '  create index arrivals_newest on arrivals (hook, at, delivery): nobody waits, since its table is new',
  )
  expect(lines).toContain(
    "  create index runs_line_a on runs (limit_a, resumed desc, rank, id) where limit_a is not null and status = 'waiting' and wait_on = 'slot': SHARE on runs, writes wait, reads go on",
  )
  const json = await program(['migrate', '--plan', '--file', 'new.db', '--json'], { cwd: folder })
  const { migrations } = JSON.parse(json.out) as {
    migrations: { statements: { text: string }[] }[]
  }
  const texts = migrations.flatMap(({ statements }) => statements.map(({ text }) => text))
  expect(texts.filter((text) => /\{\w+\}/.test(text))).toEqual([])
  expect(texts.find((text) => text.startsWith('create table arrivals'))).toMatch(/\)$/)
  expect(readdirSync(folder)).toEqual([])
})
