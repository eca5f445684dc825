// `leasehold show`: one run, from why it does not run down to every outcome that it recorded.
import type { Explanation, RunDetail } from '../../client/client.ts'
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import type { Output } from '../output.ts'
import { ago, clock, plainText, short, span, statusPaint, table } from '../said.ts'
import { reach, runNamed } from '../server.ts'

interface Options {
  readonly full?: boolean
}

export const run: Run<Options> = async ({ args: [given], options, out, sources }) => {
  const { client } = reach(sources)
  const id = await runNamed(client, given)
  const [detail, explanation, written] = await Promise.all([
    client.get(id),
    client.explain(id),
    client.logs(id, { limit: 1 }),
  ])
  if (options.json) {
    out.json({ ...detail, explanation })
    return exit.ok
  }
  const shown = (value: unknown): string =>
    options.full ? JSON.stringify(value, null, 2) : short(value, out.columns)
  head(out, detail, explanation)
  section(out, 'input', detail.input, shown)
  section(out, 'output', detail.output, shown)
  section(out, 'error', detail.error, shown)
  section(out, 'state', detail.state, shown)
  attempts(out, detail)
  if (written.lines.length > 0) out.note(`what they wrote: leasehold logs ${id}`)
  journal(out, detail, shown)
  waits(out, detail, explanation.now)
  family(out, detail)
  return exit.ok
}

const head = (
  out: Output,
  { run: row }: RunDetail,
  { sentence, conditions, now }: Explanation,
): void => {
  const { bold, dim } = out.colors
  out.line(
    `${bold(row.id)} ${statusPaint(out, row.status)} · ${plainText(`${row.workflow}@${row.version}`)}`,
  )
  out.line(plainText(sentence))
  for (const { sentence: also, since } of conditions.slice(1))
    out.line(
      dim(`  also: ${plainText(also)}${since === null ? '' : ` (since ${span(now - since)})`}`),
    )
  const facts = [
    `started ${clock(row.createdAt)} (${ago(row.createdAt, now)})`,
    row.endedAt === null
      ? null
      : `ended ${clock(row.endedAt)} after ${span(row.endedAt - row.createdAt)}`,
    row.session === null ? null : `held by ${row.session} since ${ago(row.leasedAt, now)}`,
    row.noProgressSince === null ? null : `last progress ${ago(row.noProgressSince, now)}`,
    row.owner === '' ? null : `owner ${row.owner}`,
    row.key === null ? null : `key ${row.key}`,
    row.deadline === null ? null : `total limit ${ago(row.deadline, now)}`,
    row.limits.length === 0 ? null : `limits ${row.limits.join(', ')}`,
    row.losses + row.handBacks + row.failures === 0
      ? null
      : `${row.losses} losses, ${row.handBacks} hand-backs, ${row.failures} failed attempts in a row`,
    row.progress === null ? null : `progress ${short(row.progress)}`,
  ]
  for (const fact of facts) if (fact !== null) out.line(dim(`  ${plainText(fact)}`))
}

const section = (
  out: Output,
  name: string,
  value: unknown,
  shown: (value: unknown) => string,
): void => {
  if (value === null) return
  out.line()
  out.line(`${out.colors.bold(name)} ${plainText(shown(value)).trim()}`)
}

const titled = (out: Output, title: string): void => {
  out.line()
  out.line(out.colors.bold(title))
}

const attempts = (out: Output, detail: RunDetail): void => {
  if (detail.attempts.length === 0) return
  titled(out, 'attempts')
  table(
    out,
    ['no', 'end', 'session', 'began', 'took', 'why'],
    detail.attempts.map((each) => [
      String(each.attempt),
      each.end,
      each.session,
      clock(each.leasedAt),
      each.endedAt === null ? '-' : span(each.endedAt - each.leasedAt),
      each.note ?? each.reason ?? each.firstReason ?? '',
    ]),
  )
}

const journal = (out: Output, detail: RunDetail, shown: (value: unknown) => string): void => {
  if (detail.journal.length === 0) return
  titled(out, 'journal')
  table(
    out,
    ['no', 'kind', 'key', 'attempt', 'at', 'outcome'],
    detail.journal.map((each) => [
      String(each.n),
      each.kind,
      each.key,
      String(each.attempt),
      clock(each.at),
      each.error === null ? shown(each.output) : `failed: ${shown(each.error)}`,
    ]),
  )
  if (detail.journalNext !== null)
    out.note(`more entries after no ${detail.journalNext}: --json and the API page them`)
}

const waits = (out: Output, detail: RunDetail, now: number): void => {
  if (detail.waits.length > 0) {
    titled(out, 'waits')
    table(
      out,
      ['key', 'kind', 'state', 'due', 'tries', 'since'],
      detail.waits.map((each) => [
        each.key,
        each.kind,
        each.state,
        each.dueAt === null ? '-' : ago(each.dueAt, now),
        String(each.tries),
        ago(each.createdAt, now),
      ]),
    )
  }
  const open = detail.approvals.filter((each) => each.state === 'open')
  if (detail.approvals.length > 0) {
    titled(out, 'approvals')
    table(
      out,
      ['approval', 'state', 'by', 'question'],
      detail.approvals.map((each) => [each.id, each.state, each.decidedBy ?? '-', each.prompt]),
    )
    for (const each of open) out.note(`decide: leasehold approve '${each.id}' --yes`)
  }
}

const family = (out: Output, detail: RunDetail): void => {
  const { run: row, children, events } = detail
  const kin = [
    ...(row.parent === null ? [] : [['parent', row.parent, '', '']]),
    ...(row.retryOf === null ? [] : [['retry of', row.retryOf, '', '']]),
    ...children.map((child) => [
      'child',
      child.id,
      child.status,
      `${child.workflow}@${child.version}`,
    ]),
  ]
  if (kin.length > 0) {
    titled(out, 'family')
    table(out, ['as', 'run', 'status', 'workflow'], kin)
  }
  if (events.length > 0) {
    titled(out, 'events')
    table(
      out,
      ['at', 'event', 'by', 'facts'],
      events.map((each) => [
        clock(each.at),
        each.kind,
        each.actor ?? '-',
        each.data === null ? '' : short(each.data),
      ]),
    )
  }
}
