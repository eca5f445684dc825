// `leasehold watch`: what changes, as it changes. A terminal shows one block that is written over; anything else gets a
// line for each change.
import type { Client, RunDetail, RunEvent, RunSummary } from '../../client/client.ts'
import type { Run } from '../call.ts'
import { exit, UsageError } from '../exit.ts'
import type { Output } from '../output.ts'
import { ago, clock, plainText, short, statusPaint } from '../said.ts'
import { reach, runNamed } from '../server.ts'
import { systemTime } from '../../kernel/time.ts'

interface Options {
  readonly all?: boolean
}

const ENDS: readonly string[] = ['succeeded', 'failed', 'canceled']
const SHOWN = 15

export const run: Run<Options> = async ({ args: [given], options, out, sources }) => {
  if (options.all && given) throw new UsageError('watch takes a run or --all, not both')
  const { client } = reach(sources)
  if (options.all) return watchAll(client, out, options.json === true)
  return watchOne(
    client,
    await runNamed(client, given === '' ? undefined : given),
    out,
    options.json === true,
  )
}

const watchOne = async (
  client: Client,
  id: string,
  out: Output,
  json: boolean,
): Promise<number> => {
  const lines: string[] = []
  let row: RunSummary = (await client.get(id)).run
  const draw = (): void =>
    out.block([headline(out, row), ...progressLine(out, row), ...lines.slice(-SHOWN)])
  for await (const event of client.events(id)) {
    if (event.event === 'run') row = event.data as RunSummary
    if (json) {
      out.line(JSON.stringify(event))
      continue
    }
    const line = told(out, event)
    lines.push(line)
    if (out.live) draw()
    else out.line(line)
  }
  if (!ENDS.includes(row.status)) row = (await client.get(id)).run
  if (!json) out.line(headline(out, row))
  return row.status === 'succeeded' ? exit.ok : exit.failed
}

const watchAll = async (client: Client, out: Output, json: boolean): Promise<number> => {
  const seen = new Map<string, RunSummary>()
  let counts: Awaited<ReturnType<Client['counts']>> = []
  const draw = (): void =>
    out.block([
      counts.map(({ status, count }) => `${statusPaint(out, status)} ${count}`).join('  '),
      ...[...seen.values()].slice(-SHOWN).map((each) => headline(out, each)),
    ])
  for await (const { event, data } of client.allEvents()) {
    if (event !== 'run') continue
    const row = data as RunSummary
    seen.delete(row.id)
    seen.set(row.id, row)
    if (seen.size > SHOWN) seen.delete(seen.keys().next().value ?? '')
    if (json) out.line(JSON.stringify(row))
    else if (out.live) {
      counts = await client.counts()
      draw()
    } else out.line(`${clock(systemTime.now())} ${headline(out, row)}`)
  }
  return exit.ok
}

const headline = (out: Output, row: RunSummary): string => {
  const why = row.note ?? row.reason ?? (row.waitOn === null ? '' : `waits for: ${row.waitOn}`)
  return (
    `${row.id} ${statusPaint(out, row.status)} ${plainText(row.workflow)} attempt ${row.attempt}, ` +
    `${row.entries} entries, started ${ago(row.createdAt, systemTime.now())}${why === '' ? '' : ` · ${plainText(why)}`}`
  )
}

const progressLine = (out: Output, { progress }: RunSummary): string[] => {
  if (typeof progress !== 'object' || progress === null) return []
  const { done, total, note } = progress as { done?: unknown; total?: unknown; note?: unknown }
  if (typeof done !== 'number') return []
  const said = typeof note === 'string' ? ` ${plainText(note)}` : ''
  if (typeof total !== 'number' || total <= 0) return [`${done}${said}`]
  const part = Math.min(1, Math.max(0, done / total))
  const full = Math.round(part * 30)
  return [
    `${out.colors.cyan('█'.repeat(full))}${out.colors.dim('░'.repeat(30 - full))} ${done}/${total}${said}`,
  ]
}

/** A change in a line. */
const told = (out: Output, { event, data }: RunEvent): string => {
  if (event === 'attempt') {
    const { attempt, end, session, reason } = data as RunDetail['attempts'][number]
    return end === 'held'
      ? `attempt ${attempt} by ${session}`
      : `attempt ${attempt} ${end}${reason === null ? '' : ` (${reason})`}`
  }
  if (event === 'entry') {
    const { kind, key, output, error } = data as RunDetail['journal'][number]
    return `  ${kind} ${plainText(key)}: ${error === null ? short(output) : `failed ${short(error)}`}`
  }
  if (event === 'event') {
    const { kind, actor, data: facts } = data as RunDetail['events'][number]
    return `  ${kind}${actor === null ? '' : ` by ${plainText(actor)}`}${facts === null ? '' : ` ${short(facts)}`}`
  }
  const { status, waitOn, progress } = data as RunSummary
  return `${statusPaint(out, status)}${waitOn === null ? '' : `, waits for ${waitOn}`}${progress === null ? '' : ` ${short(progress)}`}`
}
