// The rules that keep one SQL text true on two databases, and every state behind one writer:
// 1. statements and migrations stay inside the portable subset (the drivers and the dialect are free);
// 2. only store/move/ sets the columns that say what state a run is in and who holds it;
// 3. SQL stands in store/ and nowhere else.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { filesUnder, isMain, isTest, lineAt, report, root, type Finding } from './files.ts'
import { textsOf } from './texts.ts'

const source = 'packages/engine/src/'
const store = `${source}store/`
const movers = `${store}move/`
const perDatabase = [
  'dialect.ts',
  'sqlite.ts',
  'postgres.ts',
  'move/plain-postgres.ts',
  'user-transaction-postgres.ts',
  'transfer.ts',
].map((name) => store + name)
const stateColumns = ['status', 'wait_on', 'session', 'claim', 'leased_at', 'attempt', 'ended_at']

const notPortable: [RegExp, string][] = [
  [
    /\b(now|clock_timestamp|unixepoch|julianday|strftime)\s*\(|\bcurrent_timestamp\b/i,
    'the clock is the {now} clause',
  ],
  [/\btimestamp(tz)?\b/i, 'instants are integer milliseconds'],
  [
    /\b(nextval|currval|setval)\s*\(|\b(small|big)?serial\b|\bcreate\s+sequence\b|\bautoincrement\b|\bas\s+identity\b/i,
    'ids and numbers come from the port or from the row, not from a sequence',
  ],
  [/\b(gen_random_uuid|uuid_generate_v\d|random|randomblob)\s*\(/i, 'ids come from the port'],
  [/->>?|@>|<@/, 'JSON is opaque text: what is queried gets a column'],
  [
    /\bany\s*\(|\bunnest\s*\(|\barray\s*\[|\b(text|integer|int|bigint|jsonb?)\s*\[\s*\]/i,
    'a batch is one parameter opened by the {rows} clause',
  ],
  [
    /\bas\s+((not\s+)?materialized\s+)?\(\s*(update|insert|delete)\b/i,
    'a CTE only reads: write in a statement of its own',
  ],
  [/\bin\s*\(\s*select\b[^()]*\blimit\b/i, 'select the limited rows in a materialized CTE'],
  [/\bcreate\s+(or\s+replace\s+)?(constraint\s+)?trigger\b/i, 'no triggers'],
  [/\bcreate\s+type\b|\bas\s+enum\b/i, 'states are text with a check, not an enum type'],
  [/\bpg_(try_)?advisory\w*/i, 'no advisory locks: the row is the lock'],
  [/\bcreate\s+(or\s+replace\s+)?(function|procedure)\b|\$\$/i, 'no stored functions'],
  [/\bpg_notify\s*\(|^\s*(notify|listen)\s/i, 'wake-ups go through store/notifications.ts'],
  [/\b(boolean|bool)\b/i, 'no boolean columns: an instant says it, and since when'],
  [/\w::\w|\)::\w/, 'write cast(x as type), which both databases read'],
]

const statement =
  /^\s*(--[^\n]*\n\s*)*(select\b[\s\S]*\bfrom\b|update\s+\w+\s+(as\s+\w+\s+)?set\b|insert\s+into\s|delete\s+from\s|with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\b|create\s+(unique\s+)?(table|index|view)\b|alter\s+table\b|drop\s+table\b)/i

export const isSql = (text: string): boolean => statement.test(text)

const withoutComments = (sql: string): string =>
  sql.replace(/--[^\n]*/g, (comment) => ' '.repeat(comment.length))

export function portabilityFaults(sql: string): string[] {
  const read = withoutComments(sql).replace(/\{rows[^}]*\}/g, '{rows}')
  return notPortable.flatMap(([pattern, why]) => {
    const match = pattern.exec(read)
    return match ? [`"${match[0].trim()}": ${why}`] : []
  })
}

/** The state columns that a statement sets on runs; an interpolated column list counts as any of them. */
export function statesSet(sql: string): string[] {
  const read = withoutComments(sql)
  const set =
    /\bupdate\s+runs(?:\s+(?:as\s+)?(?!set\b)\w+)?\s+set\b/i.exec(read) ??
    /\binsert\s+into\s+runs\b[\s\S]*\bdo\s+update\s+set\b/i.exec(read)
  if (!set) return []
  const columns = assignments(read.slice(set.index + set[0].length))
  return columns.filter((column) => stateColumns.includes(column) || column === '${}')
}

/** The left sides of a set clause, which ends at `where`, `from` or `returning` outside all brackets. */
function assignments(clause: string): string[] {
  const columns: string[] = []
  let depth = 0
  let atStart = true
  for (const token of clause.matchAll(/\$\{\}|\w+|[(),]/g)) {
    const word = token[0].toLowerCase()
    if (word === '(') depth += 1
    else if (word === ')') depth -= 1
    else if (depth > 0) {
      if (atStart && word !== ',') columns.push(word)
      continue
    } else if (['where', 'from', 'returning'].includes(word)) break
    else if (atStart) columns.push(word)
    atStart = depth === 0 ? word === ',' : atStart
  }
  return columns
}

export function findSqlFaults(file: string, text: string): Finding[] {
  const migration = file.endsWith('.sql')
  const texts = migration ? [{ text, index: 0 }] : textsOf(file, text)
  const found: Finding[] = []
  for (const piece of texts) {
    if (!migration && !isSql(piece.text)) continue
    const say = (what: string): void => {
      found.push({ file, line: lineAt(text, piece.index), text: what })
    }
    if (!migration && !file.startsWith(store)) say('SQL stands in packages/engine/src/store only')
    if (file.startsWith(store) && !perDatabase.includes(file))
      portabilityFaults(piece.text).forEach(say)
    if (migration) portabilityFaults(piece.text).forEach(say)
    if (!migration && !file.startsWith(movers)) {
      statesSet(piece.text).forEach((column) =>
        say(`"${column}" of runs is set in store/move/ only`),
      )
    }
  }
  return found
}

if (isMain(import.meta.url)) {
  const files = [
    ...filesUnder(source, ['.ts']).filter((file) => !isTest(file)),
    ...filesUnder('packages/engine/migrations', ['.sql']),
  ]
  const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
  report(
    'sql',
    files.flatMap((file) => findSqlFaults(file, read(file))),
  )
}
