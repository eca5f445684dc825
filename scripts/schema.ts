// Writes packages/engine/schema.sql, what the migrations add up to, so that a change of the schema
// shows in review as a change of the schema.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'
import { filesUnder, isMain, root } from './files.ts'
import { writeOrCheck } from './generated.ts'

type Item = { type: string; name: string; sql: string }

export function schemaDump(migrations: string[]): string {
  const db = new Database(':memory:')
  for (const sql of migrations) db.exec(sql)
  const items = db
    .prepare<[], Item>(
      `select type, name, sql from sqlite_master
       where sql is not null and name not like 'sqlite_%' order by tbl_name, type desc, name`,
    )
    .all()
  db.close()
  const head = '-- Generated from packages/engine/migrations by `npm run docs`. Do not edit.\n'
  return head + items.map(({ sql }) => `\n${sql};\n`).join('')
}

async function sqliteText(): Promise<(sql: string) => string> {
  const file = path.join(root, 'packages/engine/src/store/dialect.ts')
  if (!existsSync(file)) return (sql) => sql
  const dialect: { sqliteText?: (sql: string) => string } = await import(pathToFileURL(file).href)
  return dialect.sqliteText ?? ((sql) => sql)
}

if (isMain(import.meta.url)) {
  const translate = await sqliteText()
  const files = filesUnder('packages/engine/migrations', ['.sql'])
  const texts = files.map((file) => translate(readFileSync(path.join(root, file), 'utf8')))
  writeOrCheck('packages/engine/schema.sql', schemaDump(texts))
}
