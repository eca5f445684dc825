// `npm start`: the engine at work. A real server, three real executors, a run for every example of GitHub's webhooks;
// executors are stopped and killed in the middle, and at the end it is checked that nothing was lost or done twice.
// `npm start -- --once` ends then, `--runs N` takes fewer examples, `--home <folder>` keeps its files elsewhere.
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'leasehold/client'
import type { Client, RunDetail } from 'leasehold/client'
import { checkAll } from '../examples/webhooks/check.ts'
import { deliveries } from '../examples/webhooks/deliveries.ts'
import { startService } from '../examples/webhooks/service.ts'
import { isMain, root } from './files.ts'
import { commandOf, endLeftovers, isUsable, portOr, startProcess } from './start/processes.ts'
import type { Started } from './start/processes.ts'
import { once, runs as most } from './start/flags.ts'
import { clean, database, output, readState, writeState } from './start/state.ts'
import type { State } from './start/state.ts'
import { makeTold } from './start/told.ts'

const PORT = 7400
const LEASE_MS = 6_000
const SLOTS = 4
const STALLED_MS = 120_000

interface Executor {
  readonly name: string
  readonly session: string
  readonly process: Started
}

/** What was done to an executor in the middle, and when. */
interface Blow {
  readonly kind: 'SIGTERM' | 'SIGKILL, reported' | 'SIGKILL, unreported'
  readonly session: string
  readonly at: number
}

const told = makeTold()
const { say, progress } = told
const ms = (value: number): string => `${Math.round(value)} ms`

const main = async (): Promise<number> => {
  const earlier = readState()
  if (
    earlier &&
    earlier.script !== process.pid &&
    commandOf(earlier.script)?.includes('start.ts')
  ) {
    say(
      `npm start runs already, as process ${earlier.script}${earlier.url ? `, at ${earlier.url}` : ''}; stop it there with Ctrl-C`,
    )
    return once ? 1 : 0
  }
  if (earlier) await endLeftovers(earlier.pids, say)
  const interrupted = earlier !== null && !earlier.finished
  const resumed = interrupted && isUsable(database)
  if (resumed) say('the last start was interrupted: going on where it was')
  else if (interrupted)
    say('the last start was interrupted, and this build cannot use what it stored: starting clean')
  if (!resumed) clean()
  const state: State = {
    script: process.pid,
    url: null,
    pids: [],
    batch: resumed ? earlier.batch : `batch-${Date.now()}`,
    finished: false,
  }
  writeState(state)

  const asked = new AbortController()
  const running = new Set<Started>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (asked.signal.aborted) {
        for (const each of running) each.kill('SIGKILL')
        process.exit(130)
      }
      asked.abort()
    })
  const begin = (what: Parameters<typeof startProcess>[0]): Started => {
    const started = startProcess(what)
    running.add(started)
    void started.ended.then(() => running.delete(started))
    state.pids.push(started.pid)
    writeState(state)
    return started
  }
  const service = await startService()
  const stopExecutors = (): Promise<void> =>
    stop([...running].filter(({ name }) => name !== 'server'))
  /** The server last, so that executors can hand back what they hold. */
  const stopAll = async (): Promise<void> => {
    await stopExecutors()
    await stop([...running])
    service.close()
  }
  try {
    const port = await portOr(PORT)
    if (port === 0) say(`port ${PORT} is taken; a free one is used`)
    const server = begin({
      name: 'server',
      args: ['serve', '--file', database, '--port', String(port)],
      env: {
        LEASEHOLD_LEASE_MS: String(LEASE_MS),
        LEASEHOLD_RENEW_MS: '1500',
        LEASEHOLD_SWEEP_MS: '1000',
      },
      up: ' at http',
    })
    const url = (await server.up).split(' at ').at(-1) ?? ''
    state.url = url
    writeState(state)
    const client = connect({ url, actor: 'npm start' })
    const executor = async (name: string): Promise<Executor> => {
      const started = begin({
        name,
        args: [
          'work',
          path.join(root, 'examples/webhooks/workflows.ts'),
          '--url',
          url,
          '--slots',
          String(SLOTS),
          '--build',
          name,
        ],
        env: { WEBHOOKS_FOLDER: output, WEBHOOKS_SERVICE: service.url },
        up: ' works at ',
      })
      return { name, session: /ses_\w+/.exec(await started.up)?.[0] ?? '', process: started }
    }
    const names = ['executor-1', 'executor-2', 'executor-3']
    const executors = await Promise.all(names.map(executor))
    say(`server and ${executors.length} executors are up: ${url}`)

    const began = Date.now()
    const items = deliveries().slice(0, most)
    const starts = await client.startMany(
      'triage',
      items.map((input) => ({ input, key: `${state.batch}:${input.delivery}` })),
    )
    const refused = starts.filter((each) => !each.ok)
    if (refused.length > 0)
      throw new Error(
        `${refused.length} runs were refused, the first: ${JSON.stringify(refused[0])}`,
      )
    const runs = starts.flatMap((each) => (each.ok ? [each.id] : []))
    say(
      `${items.length} deliveries of ${new Set(items.map(({ event }) => event)).size} events are runs now, started in ${ms(Date.now() - began)}`,
    )

    const over = new AbortController()
    const end = (): void => over.abort()
    asked.signal.addEventListener('abort', end, { once: true })
    if (asked.signal.aborted) end()
    const decided = decideApprovals(client, over.signal)
    decided.catch(end)
    const [ended, blows] = await Promise.all([
      untilAllEnded(client, runs.length, over.signal),
      disturb({ client, executors, again: executor, total: runs.length, signal: over.signal }),
    ])
    end()
    const approvals = await decided
    if (!ended) throw new Error('asked to stop')
    const ok = await tellOutcome({
      client,
      runs,
      blows,
      approvals,
      refusedByService: service.refused(),
      tookMs: Date.now() - began,
    })
    state.finished = true
    writeState(state)

    await stopExecutors()
    if (!once) {
      say(`\nthe server stays up at ${url} until Ctrl-C; try \`npx leasehold runs --url ${url}\``)
      await new Promise<void>((resolve) => {
        if (asked.signal.aborted) resolve()
        asked.signal.addEventListener('abort', () => resolve(), { once: true })
        void server.ended.then(() => resolve())
      })
    }
    await stopAll()
    return ok ? 0 : 1
  } catch (error) {
    if (asked.signal.aborted) say('interrupted: stopping; npm start goes on where it was')
    await stopAll()
    if (asked.signal.aborted) return 130
    throw error
  }
}

const stop = async (processes: readonly Started[]): Promise<void> => {
  for (const each of processes) each.kill('SIGTERM')
  await Promise.race([Promise.all(processes.map((each) => each.ended)), pause(30_000)])
}

/** Gives the approvals that the workflows ask for; what was taken back is not published. */
const decideApprovals = async (
  client: Client,
  signal: AbortSignal,
): Promise<{ approved: number; denied: number }> => {
  const counts = { approved: 0, denied: 0 }
  while (!signal.aborted) {
    const { approvals } = await client.approvals({ limit: '200' })
    for (const { id, data } of approvals) {
      const { action } = data as { action: string | null }
      const deny = action === 'removed' || action === 'withdrawn'
      await (deny
        ? client.deny(id, { reason: 'what was taken back is not published' })
        : client.approve(id))
      counts[deny ? 'denied' : 'approved'] += 1
    }
    await pause(200, undefined, { signal }).catch(() => undefined)
  }
  return counts
}

interface Disturbing {
  readonly client: Client
  readonly executors: readonly Executor[]
  readonly again: (name: string) => Promise<Executor>
  readonly total: number
  readonly signal: AbortSignal
}

/** Stops one executor and kills two, each while it holds runs, and starts each again. */
const disturb = async ({
  client,
  executors,
  again,
  total,
  signal,
}: Disturbing): Promise<Blow[]> => {
  const blows: Blow[] = []
  const kinds = ['SIGTERM', 'SIGKILL, reported', 'SIGKILL, unreported'] as const
  for (const [i, kind] of kinds.entries()) {
    const victim = executors[i]
    if (!victim || !(await untilBusy(client, victim.session, (total * (i + 1)) / 6, signal)))
      return blows
    const at = Date.now()
    blows.push({ kind, session: victim.session, at })
    victim.process.kill(kind === 'SIGTERM' ? 'SIGTERM' : 'SIGKILL')
    const how = await victim.process.ended
    if (signal.aborted) return blows
    say(
      `${victim.name} (process ${victim.process.pid}) got ${kind.slice(0, 7)} and ended with ${how} after ${ms(Date.now() - at)}`,
    )
    if (kind === 'SIGKILL, reported')
      await client.call('exited', {
        body: {
          session: victim.session,
          evidence: `process ${victim.process.pid} ended by ${how}, as its launcher saw`,
        },
      })
    await again(victim.name)
  }
  return blows
}

/**
 * Waits until so many runs have ended and the session holds as many as it can, or any towards the end; false when there is
 * nothing more to wait for.
 */
const untilBusy = async (
  client: Client,
  session: string,
  ended: number,
  signal: AbortSignal,
): Promise<boolean> => {
  while (!signal.aborted) {
    const [{ done, open }, executors] = await Promise.all([countsOf(client), client.executors()])
    if (open === 0) return false
    const enough = open > executors.length * SLOTS * 2 ? SLOTS : 1
    if (done >= ended && executors.some(({ id, held }) => id === session && held >= enough))
      return true
    await pause(50)
  }
  return false
}

const countsOf = async (client: Client): Promise<{ done: number; open: number; words: string }> => {
  const counts = await client.counts()
  const sum = (ends: boolean): number =>
    counts.reduce(
      (all, { status, count }) =>
        all + (['succeeded', 'failed', 'canceled'].includes(status) === ends ? count : 0),
      0,
    )
  return {
    done: sum(true),
    open: sum(false),
    words: counts
      .flatMap(({ status, count }) => (count > 0 ? [`${count} ${status}`] : []))
      .join(', '),
  }
}

/** True when all have ended; false when it was asked to stop. A standstill is an error. */
const untilAllEnded = async (
  client: Client,
  total: number,
  signal: AbortSignal,
): Promise<boolean> => {
  let last = { done: -1, at: Date.now() }
  while (!signal.aborted) {
    const { done, open, words } = await countsOf(client)
    if (open === 0 && done >= total) return true
    if (done !== last.done) last = { done, at: Date.now() }
    if (Date.now() - last.at > STALLED_MS)
      throw new Error(`no run has ended for ${STALLED_MS / 1_000} s: ${words}`)
    progress(words)
    await pause(250, undefined, { signal }).catch(() => undefined)
  }
  return false
}

interface Outcome {
  readonly client: Client
  readonly runs: readonly string[]
  readonly blows: readonly Blow[]
  readonly approvals: { readonly approved: number; readonly denied: number }
  readonly refusedByService: number
  readonly tookMs: number
}

const tellOutcome = async ({
  client,
  runs,
  blows,
  approvals,
  refusedByService,
  tookMs,
}: Outcome): Promise<boolean> => {
  const { details, effects, repeated, wrong } = await checkAll({
    client,
    runs,
    folder: output,
  })
  const attempts = details.reduce((sum, { run }) => sum + run.attempt, 0)
  say(
    `\n${details.length} runs (${runs.length} of triage, each with a child) in ${(tookMs / 1_000).toFixed(1)} s, by ${attempts} attempts`,
  )
  const ends = ['succeeded', 'failed', 'canceled'] as const
  const ended = ends.map(
    (end) => `${details.filter(({ run }) => run.status === end).length} ${end}`,
  )
  say(`ended: ${ended.join(', ')}`)
  say(
    `approvals: ${approvals.approved} given, ${approvals.denied} denied; the service refused ${refusedByService} first tries, each tried again`,
  )
  for (const blow of blows) say(takenFrom(details, blow))
  say(
    `effects: ${effects}, of which ${repeated} happened once more since their executor was killed before it could record them`,
  )
  for (const each of wrong.slice(0, 20)) say(`wrong: ${each}`)
  say(
    wrong.length === 0
      ? 'checked: every run ended once, and every effect counts once'
      : `${wrong.length} things are not as they should be`,
  )
  return wrong.length === 0
}

/** What became of the runs that a stopped or killed executor held. */
const takenFrom = (details: readonly RunDetail[], { kind, session, at }: Blow): string => {
  const ends = kind === 'SIGTERM' ? ['handed_back'] : ['lost', 'expired']
  const cut = details.flatMap(({ attempts }) =>
    attempts.flatMap((attempt, i) =>
      attempt.session === session && ends.includes(attempt.end) && (attempt.endedAt ?? 0) >= at
        ? [{ attempt, next: attempts[i + 1] }]
        : [],
    ),
  )
  const waits = cut
    .flatMap(({ next }) => (next ? [next.leasedAt - at] : []))
    .toSorted((a, b) => a - b)
  const word =
    kind === 'SIGTERM'
      ? 'handed back'
      : `taken back as ${[...new Set(cut.map(({ attempt }) => attempt.end))].join(' and ') || 'nothing'}`
  if (cut.length === 0) return `${kind}: ${session} held nothing that had to be ${word}`
  const span =
    waits.length === 0
      ? ''
      : `; next attempt ${ms(waits[0] ?? 0)} to ${ms(waits.at(-1) ?? 0)} after the signal, half within ${ms(waits[Math.floor(waits.length / 2)] ?? 0)}`
  return `${kind}: ${cut.length} runs ${word}${span}\n  evidence: ${cut[0]?.attempt.note ?? 'its own word'}`
}

if (isMain(import.meta.url)) {
  try {
    process.exit(await main())
  } catch (error) {
    say(`npm start: ${(error as Error).message}`)
    process.exit(1)
  }
}
