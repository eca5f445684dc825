// What changes, as it changes. A stream's position is a run's `rev`, which every write of it raises; a message carries it
// only when all of that write has been sent, so a reader that resumes misses nothing.
import { placeIn } from '../../kernel/numbers.ts'
import type { RunStatus } from '../../model/run.ts'
import { isTerminal } from '../../model/run.ts'
import type { Message } from '../../protocol/sse.ts'
import { runChanges, runViews, successorOf } from '../../queries/run-changes.ts'
import { streamItems } from '../../queries/stream-items.ts'
import { awaitChange } from './await-change.ts'
import type { Engine } from '../engine.ts'
import type { Source } from './event-stream.ts'

/** How long changes of all runs are collected before they are sent. */
const COALESCE_MS = 200
const RUNS_A_TIME = 500
const ITEMS_A_TIME = 500

export interface StreamPosition {
  /** The run of the series that it stands at; null is the one that was asked for. */
  readonly run: string | null
  readonly rev: number
}

/** A position as a message's id carries it: a rev, and the run where it is not the first. */
export const streamPosition = (id: string | null): StreamPosition => {
  const [, rev = '0', run] = /^(\d+)(?:@(.+))?$/s.exec(id ?? '') ?? []
  return {
    run: run === undefined ? null : decoded(run),
    rev: placeIn(rev, Number.MAX_SAFE_INTEGER),
  }
}

const decoded = (text: string): string | null => {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/**
 * The changes of one run after a position, and of those that continue it, until the series has ended; from the beginning
 * where the position is not one of the series.
 */
export const followRun = (engine: Engine, asked: string, after: StreamPosition): Source =>
  async function* (signal): AsyncGenerator<Message, void, undefined> {
    const { hub, settings } = engine
    let run = asked
    let position = { rev: after.rev, n: 0, attempt: 0 }
    if (after.run !== null) {
      const { runs } = await engine.read((tx) => runViews(tx, [asked, after.run ?? asked]))
      const [series, other] = [asked, after.run].map(
        (id) => runs.find((each) => each.id === id)?.series,
      )
      // a position in no run, or in one of another series, is none of this stream's
      if (series !== undefined && series === other) run = after.run
      else position = { rev: 0, n: 0, attempt: 0 }
    }
    while (!signal.aborted) {
      const change = awaitChange((hear) => hub.onChanged(run, hear), engine.ports.timers, signal)
      const changes = await engine.read((tx) => runChanges(tx, run, position))
      if (!changes) return change.drop()
      if (changes.run.rev < position.rev) {
        // a `rev` only rises, so that this one is another run's, or of a store as it was before a backup was restored
        change.drop()
        position = { rev: 0, n: 0, attempt: 0 }
        continue
      }
      for (const attempt of changes.attempts) yield { event: 'attempt', id: null, data: attempt }
      for (const entry of changes.entries) yield { event: 'entry', id: null, data: entry }
      for (const event of changes.events) yield { event: 'event', id: null, data: event }
      const over = isTerminal(changes.run.status) && !changes.more
      const last = over && changes.run.reason !== 'continued'
      // a reader that comes back after the last change is told all the same that it is over
      if ((changes.run.rev > position.rev && !changes.more) || last)
        yield {
          event: 'run',
          id:
            run === asked
              ? String(changes.run.rev)
              : `${changes.run.rev}@${encodeURIComponent(run)}`,
          data: changes.run,
        }
      position = changes.next
      if (over || changes.more) change.drop()
      else await change.wait(settings.pollMs)
      if (!over) continue
      const ended = run
      const next = last ? null : await engine.read((tx) => successorOf(tx, ended))
      if (next === null) return
      run = next
      position = { rev: 0, n: 0, attempt: 0 }
    }
  }

/** Every run that changes, as it stands a moment later; a reader that comes back is told to read anew. */
export const followRuns = (engine: Engine, resumed: boolean): Source =>
  async function* (signal): AsyncGenerator<Message, void, undefined> {
    const { hub, ports, settings } = engine
    const changed = new Set<string>()
    let hear: () => void = () => undefined
    const stop = hub.onChanged(null, (run) => {
      changed.add(run)
      hear()
    })
    try {
      if (resumed) yield { event: 'reset', id: null, data: {} }
      while (!signal.aborted) {
        if (changed.size === 0) {
          const change = awaitChange(
            (heard) => {
              hear = heard
              if (changed.size > 0) heard()
              return () => undefined
            },
            ports.timers,
            signal,
          )
          await change.wait(settings.leaseMs)
        }
        const pause = awaitChange(() => () => undefined, ports.timers, signal)
        await pause.wait(COALESCE_MS)
        const some = [...changed].slice(0, RUNS_A_TIME)
        for (const run of some) changed.delete(run)
        if (some.length === 0) continue
        const { now, runs } = await engine.read((tx) => runViews(tx, some))
        for (const run of runs) yield { event: 'run', id: String(now), data: run }
      }
    } finally {
      stop()
    }
  }

/** What a run appends to one of its streams, after a number, until the run has ended. */
export const followStream = (engine: Engine, run: string, name: string, after: number): Source =>
  async function* (signal): AsyncGenerator<Message, void, undefined> {
    let last = after
    while (!signal.aborted) {
      const change = awaitChange(
        (hear) => engine.hub.onChanged(run, hear),
        engine.ports.timers,
        signal,
      )
      const from = last
      const page = await engine.read((tx) => streamItems(tx, run, name, from, ITEMS_A_TIME))
      for (const item of page.items) {
        yield { event: 'item', id: String(item.seq), data: item }
        last = item.seq
      }
      const full = page.items.length === ITEMS_A_TIME
      const over = !full && (page.status === null || isTerminal(page.status as RunStatus))
      if (full || over) change.drop()
      else await change.wait(engine.settings.pollMs)
      if (!over) continue
      const continuedAs =
        page.reason === 'continued' ? await engine.read((tx) => successorOf(tx, run)) : null
      yield { event: 'end', id: null, data: { status: page.status, continuedAs } }
      return
    }
  }
