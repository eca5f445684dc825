// What a migration does to those who use the database meanwhile: each of its statements, with the lock that it takes on a table
// that was there before. A statement that stands in no line here cannot be in a migration.
import { Defect } from '../kernel/errors.ts'

export interface Migration {
  readonly number: number
  readonly name: string
  readonly text: string
}

export type LockLevel = 'ROW EXCLUSIVE' | 'SHARE' | 'ACCESS EXCLUSIVE'

/** What others cannot do to the table until the migration commits. */
const MEANS: Record<LockLevel, string> = {
  'ROW EXCLUSIVE': 'nobody waits, but for a row that it changes',
  SHARE: 'writes wait, reads go on',
  'ACCESS EXCLUSIVE': 'reads and writes wait',
}

export interface PlannedStatement {
  readonly text: string
  /** Null where only what the migration itself has made is touched: nobody can wait for that. */
  readonly lock: {
    readonly table: string
    readonly level: LockLevel
    readonly means: string
  } | null
}
export interface PlannedMigration {
  readonly name: string
  readonly statements: readonly PlannedStatement[]
}

/** The statements of a migration: each ends with a semicolon at the end of a line that is no comment. */
export const statementsOf = (text: string): string[] => {
  const statements: string[] = []
  let lines: string[] = []
  for (const line of text.split('\n')) {
    const comment = /^\s*(--.*)?$/.test(line)
    if (comment && lines.length === 0) continue
    lines.push(line)
    if (comment || !line.trimEnd().endsWith(';')) continue
    statements.push(lines.join('\n').trim().replace(/;$/, ''))
    lines = []
  }
  if (lines.length > 0)
    throw new Defect(`a migration ends within a statement: ${lines.join('\n').slice(0, 80)}`)
  return statements
}

const FORMS: readonly (readonly [RegExp, LockLevel])[] = [
  [/^create (?:unique )?index \w+ on (\w+)/i, 'SHARE'],
  [/^alter table (\w+)/i, 'ACCESS EXCLUSIVE'],
  [/^drop table (\w+)/i, 'ACCESS EXCLUSIVE'],
  [/^(?:update|insert into|delete from) (\w+)/i, 'ROW EXCLUSIVE'],
]

/** What each of these migrations does, where all before them in `list` have been applied; `textOf` a database is what it is sent. */
export const planOf = (
  list: readonly Migration[],
  pending: readonly Migration[],
  textOf: (text: string) => string,
): PlannedMigration[] => {
  const numbers = new Set(pending.map(({ number }) => number))
  const tableOf = new Map<string, string>()
  const planned: PlannedMigration[] = []
  for (const migration of list) {
    const own = new Set<string>()
    const statements = statementsOf(textOf(migration.text)).map((text): PlannedStatement => {
      const [, made] = /^create table (\w+)/i.exec(text) ?? []
      if (made !== undefined) {
        own.add(made)
        return { text, lock: null }
      }
      const [, index, on] = /^create (?:unique )?index (\w+) on (\w+)/i.exec(text) ?? []
      if (index !== undefined && on !== undefined) tableOf.set(index, on)
      const [, dropped] = /^drop index (\w+)/i.exec(text) ?? []
      const found =
        dropped === undefined
          ? FORMS.map(([form, level]) => ({ table: form.exec(text)?.[1], level })).find(
              ({ table }) => table !== undefined,
            )
          : { table: tableOf.get(dropped), level: 'ACCESS EXCLUSIVE' as const }
      const { table, level } = found ?? {}
      if (table === undefined || level === undefined)
        throw new Defect(
          `${migration.name}: no lock is known of the statement ${text.slice(0, 80)}; add its form to store/migration-plan.ts`,
        )
      return { text, lock: own.has(table) ? null : { table, level, means: MEANS[level] } }
    })
    if (numbers.has(migration.number)) planned.push({ name: migration.name, statements })
  }
  return planned
}
