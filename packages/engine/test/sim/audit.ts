// The whole store at the end, in SQL that knows nothing of the engine's own: what the checks of single commits cannot see,
// and that the shadow missed nothing.
import type Database from 'better-sqlite3'
import type { Answers } from './answers.ts'
import { outputOf, programOf } from './programs.ts'
import type { RunRow, Shadow } from './shadow.ts'
import type { World } from './world.ts'

/** Each finds rows that must not be. */
const AUDITS: readonly (readonly [rule: string, what: string, sql: string])[] = [
  [
    'S1',
    'a run is held by no session',
    `select r.id from runs r left join sessions s on s.id = r.session where r.session is not null and s.id is null`,
  ],
  [
    'S4',
    'attempts are not 1..n',
    `select r.id from runs r where r.attempt <> (select count(*) from attempts a where a.run = r.id) + (r.session is not null)`,
  ],
  [
    'S4',
    'an attempt is numbered beyond its run',
    `select a.run from attempts a join runs r on r.id = a.run where a.attempt > r.attempt`,
  ],
  [
    'S6',
    'entries are not 1..n',
    `select r.id from runs r where r.entries <> (select count(*) from steps s where s.run = r.id) or r.entries <> (select coalesce(max(s.n), 0) from steps s where s.run = r.id)`,
  ],
  [
    'S6',
    'a child is recorded and not there',
    `select s.run from steps s where s.kind = 'spawn' and not exists (select 1 from runs c where c.id = json_extract(s.output, '$') or c.retry_of is not null)
     and not exists (select 1 from runs p where p.id = s.run and p.retry_of is not null) and not exists (select 1 from runs c where c.parent_key = s.key and c.series in (select series from runs x where x.parent_key = s.key))`,
  ],
  [
    'S8',
    'a child has a parent that is not there',
    `select c.id from runs c left join runs p on p.id = c.parent where c.parent is not null and p.id is null`,
  ],
  [
    'S8',
    'a bound child outlives its parent',
    `select c.id from runs c join runs p on p.id = c.parent where c.ended_at is null and c.on_parent_end = 'cancel' and p.ended_at is not null and p.reason is not 'continued'`,
  ],
  [
    'S8',
    'two children of one key',
    `select parent from runs where parent is not null and series = id group by parent, parent_key having count(*) > 1`,
  ],
  [
    'S10',
    'an approval and its wait disagree',
    `select p.id from approvals p join waits w on w.run = p.run and w.key = p.key where (p.state = 'open') <> (w.state = 'open')`,
  ],
  [
    'S12',
    'a wait of an ended run is open',
    `select w.run from waits w join runs r on r.id = w.run where r.ended_at is not null and w.state not in ('closed', 'taken')`,
  ],
  [
    'S22',
    'two runs of one key',
    `select key from runs where key is not null group by owner, workflow, key having count(*) > 1`,
  ],
  [
    'RUN-30',
    'a signal was received by two waits',
    `select run from signals where read_at is not null group by run, taken_by having count(*) > 1`,
  ],
  [
    'RUN-30',
    'a signal was lost',
    `select g.run from signals g join runs r on r.id = g.run where r.ended_at is null and g.taken_by is not null and g.read_at is null and not exists (select 1 from waits w where w.run = g.run and w.key = g.taken_by and w.state = 'satisfied')`,
  ],
  [
    'RUN-34',
    'an unread signal stayed behind when its run continued',
    `select g.run from signals g join runs r on r.id = g.run where r.reason = 'continued' and g.read_at is null`,
  ],
  ['S7', 'an order is left', `select id from orders`],
  [
    'EX-09',
    'a later reason to stop is stored in place of the first',
    `select e.run from events e join attempts a on a.run = e.run and a.attempt = json_extract(e.data, '$.attempt') where e.kind = 'attempt.stopping' and a.first_reason is not null and a.first_reason <> json_extract(e.data, '$.firstReason')`,
  ],
  [
    'EX-09',
    'two first reasons of one attempt are stored',
    `select run from events where kind = 'attempt.stopping' group by run, json_extract(data, '$.attempt') having count(*) > 1`,
  ],
]

/** What of a world's plan the audit goes by. */
interface OfPlan {
  readonly real: boolean
  readonly contexts: boolean
}

export const audit = (
  db: Database.Database,
  world: World,
  shadow: Shadow,
  answers: Answers,
  plan: OfPlan,
): void => {
  for (const [rule, what, sql] of AUDITS) {
    const found = statement(db, sql).pluck().get()
    if (found !== undefined) world.violate(rule, `${what}: ${JSON.stringify(found)}`)
  }
  for (const { what, run, sql, params } of answers.acknowledged)
    if (statement(db, sql).get(...params) === undefined && shadow.runs.has(run.replace(/:.*/, '')))
      world.violate('S6', `a ${what} of ${run} was acknowledged and is not there`)
  const rows = statement(
    db,
    'select id, status, rev, attempt, session, entries, ended_at from runs',
  ).all() as Pick<
    RunRow,
    'id' | 'status' | 'rev' | 'attempt' | 'session' | 'entries' | 'ended_at'
  >[]
  if (rows.length !== shadow.runs.size)
    world.violate('S6', `${rows.length} runs are stored; ${shadow.runs.size} were seen`)
  for (const row of rows) {
    const seen = shadow.runs.get(row.id)
    if (seen?.rev !== row.rev || seen.status !== row.status || seen.session !== row.session)
      world.violate('S2', `${row.id} was changed by no transaction that was seen`)
  }
  for (const run of shadow.runs.values()) results(run, world, shadow, plan)
  written(db, world)
}

/** EX-25: a line stands under the attempt that wrote it, once and in its order. */
const written = (db: Database.Database, world: World): void => {
  const parts = statement(
    db,
    'select run, attempt, n, upto, lines from attempt_logs order by run, attempt, n',
  ).all() as { run: string; attempt: number; n: number; upto: number; lines: string }[]
  let last = { place: '', n: 0 }
  for (const { run, attempt, n, upto, lines } of parts) {
    const place = `${run}#${attempt}`
    for (const { text } of JSON.parse(lines) as { text: string }[])
      if (text !== place) world.violate('EX-25', `${place} has a line that ${text} wrote`)
    if (last.place === place && n <= last.n)
      world.violate('EX-25', `line ${n} of ${place} is stored twice`)
    last = { place, n: upto }
  }
}

/** S18: a result is what its journal says, and the journal says what the bodies answer. */
const results = (run: RunRow, world: World, shadow: Shadow, { real, contexts }: OfPlan): void => {
  const entries = [...shadow.entriesOf(run.id).values()].sort((a, b) => a.n - b.n)
  for (const entry of entries)
    if (
      entry.kind === 'step' &&
      entry.output !== null &&
      run.retry_of === null &&
      entry.output !== outputOf(run.id, entry.key)
    )
      world.violate(
        'S18',
        `${entry.key} of ${run.id} is ${entry.output}; its body answers ${outputOf(run.id, entry.key)}`,
      )
  if (run.status === 'succeeded' && run.reason !== 'continued') {
    const expected = real
      ? `[${stepKeys(run.workflow)
          .map((key) => `["${key}",${shadow.entriesOf(run.id).get(key)?.output}]`)
          .join()}]`
      : JSON.stringify(entries.map((entry) => [entry.key, entry.output, entry.error]))
    if (run.output !== expected)
      world.violate('S18', `${run.id} has the result ${run.output}; its journal says ${expected}`)
  }
  const { fails = [] } = programOf(run.workflow)
  if (
    run.status === 'failed' &&
    run.reason !== 'attempts_exhausted' &&
    !fails.includes(run.reason ?? '') &&
    !(run.reason === 'stale' && contexts) &&
    !(run.reason === 'unknown_workflow' && calledTooEarly(run))
  )
    world.violate('RUN-17', `${run.id} (${run.workflow}) failed for ${run.reason}: ${run.note}`)
}

/** It called a workflow before the first executor came that has it: the note says which, and which were known. */
const calledTooEarly = ({ workflow, note }: RunRow): boolean => {
  const [, called = '', known = ''] = /named (\w+); known: (.*)$/.exec(note ?? '') ?? []
  const calls = programOf(workflow)
    .ops({ n: 1 })
    .some((op) => (op.do === 'child' || op.do === 'spawn') && op.workflow === called)
  return calls && !known.split(', ').includes(called)
}

/** Keys of the steps whose results a run of this program gives back. */
const stepKeys = (workflow: string): string[] =>
  programOf(workflow)
    .ops({})
    .flatMap((op) =>
      op.do === 'step' || op.do === 'deaf' ? [op.key] : op.do === 'parallel' ? op.keys : [],
    )

const prepared = new WeakMap<Database.Database, Map<string, Database.Statement>>()

const statement = (db: Database.Database, sql: string): Database.Statement => {
  let all = prepared.get(db)
  if (!all) prepared.set(db, (all = new Map()))
  let found = all.get(sql)
  if (!found) all.set(sql, (found = db.prepare(sql)))
  return found
}
