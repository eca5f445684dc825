// What the torture has to tell: what struck and how often, what was seen of it, how much was done, and every violation with
// the history of its run.
import type { Violation } from './checker.ts'
import type { Verdict } from './torture.ts'

const SHOWN = 12

export const report = (verdict: Verdict): string[] => {
  const { violations, struck, history, rows, events, starts, failedCalls, faults } = verdict
  const lines: string[] = []
  const line = (what: string, figure: string | number): void =>
    void lines.push(`${what.padEnd(44)}${figure}`)
  const seen = (event: string): number => events.get(event) ?? 0

  lines.push('what struck')
  for (const { kind, hits, misses } of struck)
    line(`  ${kind}`, misses === 0 ? hits : `${hits} (and ${misses} met nobody)`)
  line(
    '  in all',
    struck.reduce((sum, { hits }) => sum + hits, 0),
  )
  lines.push('what was seen')
  for (const [end, count] of counted(rows.attempts.map(({ end }) => end)))
    line(`  attempts ${end.replaceAll('_', ' ')}`, count)
  for (const [reason, count] of counted(
    rows.attempts.flatMap(({ end, reason }) => (end === 'handed_back' ? [reason ?? 'none'] : [])),
  ))
    line(`  handed back for ${reason}`, count)
  line('  attempts taken back from the dead', seen('attempt.taken_back'))
  line('  stale writes refused', verdict.refused)
  line('  bodies whose effect does not count', history.did.length - effective(verdict))
  line('  sessions fenced by themselves', seen('session.fenced'))
  line('  sessions reaped', seen('session.reaped'))
  line('  processes stalled by a body', history.stalls)
  for (const [role, count] of starts) line(`  starts of ${role} processes`, count)
  const patient = verdict.stops.filter(({ graceMs }) => graceMs > 1_000)
  const orderly = patient.filter(({ how }) => how === 0)
  line('  stops in order, of those with a long grace', `${orderly.length} of ${patient.length}`)
  for (const { program, how, ms, said } of patient.filter(({ how }) => how !== 0))
    line(`    ${program} ended with ${how} after`, `${(ms / 1_000).toFixed(1)} s: ${said}`)
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
  for (const { kind, primaryMs, writableMs, servedMs } of verdict.failovers)
    line(
      `  ${kind}: another primary after`,
      `${seconds(primaryMs)}, which took writes after ${seconds(writableMs)}; a run was served ${seconds(servedMs)} later`,
    )
  lines.push('what was done')
  const struckFor = verdict.strikingMs / 1_000
  line('  runs', rows.runs.size)
  line('  starts acknowledged', history.started.size)
  line('  starts rolled back', history.rolledBack.size)
  line('  steps recorded', rows.entries.filter(({ kind }) => kind === 'step').length)
  line('  runs a second while struck', (rows.runs.size / struckFor).toFixed(1))
  line('  from the last heal to the last end', seconds(verdict.quietMs))
  for (const [what, count] of failedCalls) line(`  calls that failed, ${what}`, count)
  for (const fault of faults) lines.push(`  not struck: ${fault}`)
  line('violations', violations.length)
  for (const violation of violations.slice(0, SHOWN)) lines.push(...told(violation, verdict))
  if (violations.length > SHOWN) lines.push(`and ${violations.length - SHOWN} more`)
  if (violations.length > 0) lines.push(`logs, effects and violations: ${verdict.folder}`)
  return lines
}

const effective = ({ rows }: Verdict): number =>
  rows.entries.filter(({ kind, failed, output }) => kind === 'step' && !failed && typeof output === 'string').length // prettier-ignore

const counted = (items: readonly string[]): [string, number][] => {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return [...counts].toSorted(([, a], [, b]) => b - a)
}

/** A violation, and all that is known of its run in the order of its revs. */
const told = ({ rule, run, what }: Violation, { history, rows }: Verdict): string[] => {
  const lines = [`${rule}: ${run ?? ''} ${what}`]
  if (run === null) return lines
  const asked = history.asked.get(run)
  if (asked)
    lines.push(`    asked by ${asked.by}: ${asked.workflow} ${JSON.stringify(asked.input)}`)
  const row = rows.runs.get(run)
  if (row) lines.push(`    ${JSON.stringify(row)}`)
  const happened = [
    ...rows.attemptsOf(run).map((each) => ({ rev: each.rev, text: `attempt ${each.attempt} of ${each.session} ${each.end} ${each.reason ?? ''}, held ${each.leasedAt} to ${each.endedAt}` })), // prettier-ignore
    ...rows.journalOf(run).map((each) => ({ rev: each.rev, text: `${each.kind} ${each.key} by attempt ${each.attempt}: ${JSON.stringify(each.output)}` })), // prettier-ignore
    ...rows.events.filter((each) => each.run === run).map((each) => ({ rev: each.rev, text: `${each.kind} ${JSON.stringify(each.data)} at ${each.at}` })), // prettier-ignore
  ].toSorted((a, b) => a.rev - b.rev)
  for (const { rev, text } of happened) lines.push(`    rev ${rev}: ${text}`)
  for (const { attempt, step, value } of history.did.filter((each) => each.run === run))
    lines.push(`    body of ${step} under attempt ${attempt}: ${value}`)
  return lines
}
