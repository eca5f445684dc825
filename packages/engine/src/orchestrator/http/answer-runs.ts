// Answers about runs: start, look, wait for, tell.
import type * as z from 'zod'
import { encode } from '../../kernel/json.ts'
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import { INT_MAX, placeIn } from '../../kernel/numbers.ts'
import type { StartCommand } from '../../model/start.ts'
import type { runRoutes, startBody } from '../../protocol/run-routes.ts'
import { startBody as startShape } from '../../protocol/run-routes.ts'
import { approvalInbox } from '../../queries/approvals.ts'
import { logPage } from '../../queries/logs.ts'
import { journalPage, runDetail, runResult } from '../../queries/run-detail.ts'
import { runCounts, runList } from '../../queries/run-list.ts'
import { explain } from '../../queries/explain.ts'
import { within } from '../../store/sql.ts'
import { cancel } from '../../transitions/cancel.ts'
import { decide } from '../../transitions/decide.ts'
import { pause, resume } from '../../transitions/pause.ts'
import { retry } from '../../transitions/retry.ts'
import { reversion } from '../../transitions/reversion.ts'
import { signal as sendSignal } from '../../transitions/signal.ts'
import type { StartAnswer, StartItem } from '../../transitions/start.ts'
import { knownStarts, start } from '../../transitions/start.ts'
import { takeFrom } from '../../transitions/take-from.ts'
import type { AnswersTo, Shared } from './answers.ts'
import { awaitChange } from './await-change.ts'
import type { Transition } from './commands.ts'
import { paged, placeOf } from './cursor.ts'
import { faultsOf, invalid } from '../faults.ts'
import { followLogs, logPlace, shownLine } from './follow-logs.ts'
import { followRun, followRuns, followStream, streamPosition } from './follow-runs.ts'

/** Bulk starts are stored in parts, so that others get a turn between them. */
const BULK_PART = 1_000

export const runAnswers = (shared: Shared): AnswersTo<keyof typeof runRoutes> => {
  const { engine, checkInput } = shared
  const { settings, hub } = engine
  const { ids, timers, time } = engine.ports
  const missing = (run: string): Refusal => refuse('not_found', `there is no run ${run}`, { run })

  const itemOf = (body: z.output<typeof startBody>, actor: string): StartItem | Refusal => {
    const input = encode(body.input)
    const no = checkInput(engine.catalog, body.workflow, body.version ?? null, body.input)
    if (no) return no
    const command: StartCommand = { ...body, id: body.id ?? ids.next('run'), input }
    return { command, actor }
  }

  /** Starts in a transaction of its own, whose answer is kept for a repeat. */
  const startOnce = (
    items: readonly StartItem[],
  ): Transition<{ answers: readonly StartAnswer[] }> =>
    function* (tx, context) {
      const { answers, follow } = yield* within(start(tx, items, context, engine.lanes.known))
      const known = items.filter((_item, i) => answers[i] === 'known')
      const found = known.length === 0 ? [] : yield* within(knownStarts(tx, known, context))
      return {
        answer: {
          ok: true,
          answers: answers.map((answer, i) =>
            answer === 'known'
              ? (found[known.indexOf(items[i] as StartItem)] as StartAnswer)
              : answer,
          ),
        },
        follow,
      }
    }

  return {
    async startRun({ body, actor, command, once }) {
      await engine.learn([body])
      const item = itemOf(body, actor)
      if ('ok' in item) return item
      if (command === null) return engine.start(item)
      return once(function* (tx, context) {
        const { answer, follow } = yield* startOnce([item])(tx, context)
        const first = answer.ok ? answer.answers[0] : answer
        return { answer: first as StartAnswer, follow }
      })
    },

    async startRuns({ body, actor, command, once }) {
      const refusals = new Map<number, Refusal>()
      const items: { item: StartItem; at: number }[] = []
      const reads = body.items.map((each) => startShape.safeParse(each))
      await engine.learn(reads.flatMap((read) => (read.success ? [read.data] : [])))
      reads.forEach((read, at) => {
        const item = read.success
          ? guardedItem(() => itemOf(read.data, actor))
          : invalid(faultsOf(read.error, `$.items[${at}]`), 'item')
        if ('ok' in item) refusals.set(at, item)
        else items.push({ item, at })
      })
      const answers: StartAnswer[] = []
      const put = (at: number, answer: StartAnswer): void => {
        answers[at] = answer
      }
      for (const [at, refusal] of refusals) put(at, refusal)
      if (command === null) {
        for (let i = 0; i < items.length; i += BULK_PART) {
          const part = items.slice(i, i + BULK_PART)
          const done = await engine.startMany(part.map(({ item }) => item))
          part.forEach(({ at }, n) => put(at, done[n] as StartAnswer))
        }
      } else {
        const done = await once(startOnce(items.map(({ item }) => item)))
        if (!done.ok) return done
        items.forEach(({ at }, n) => put(at, done.answers[n] as StartAnswer))
      }
      return { started: answers.filter((answer) => answer.ok && answer.started).length, answers }
    },

    async listRuns({ query }) {
      const from = placeOf('runs', query.cursor)
      if (!from.ok) return from
      const filter = {
        statuses: query.status ?? [],
        workflow: query.workflow ?? null,
        owner: query.owner ?? null,
        queue: query.queue ?? null,
        label: query.label ?? null,
        waitOn: query.waitOn ?? null,
        reason: query.reason ?? null,
        startedAfter: query.startedAfter ?? null,
        startedBefore: query.startedBefore ?? null,
        text: query.text ?? null,
        roots: query.roots === 'true',
      }
      return paged('runs', await engine.read((tx) => runList(tx, filter, from.place, query.limit)))
    },

    async countRuns() {
      return { counts: await engine.read(runCounts) }
    },

    async getRun({ params: { id } }) {
      return (await engine.read((tx) => runDetail(tx, id))) ?? missing(id)
    },

    async explainRun({ params: { id } }) {
      return (await engine.read((tx) => explain(tx, id, settings))) ?? missing(id)
    },

    async readJournal({ params: { id }, query: { after, limit } }) {
      return (await engine.read((tx) => journalPage(tx, id, after, limit))) ?? missing(id)
    },

    async resultOfRun({ params, query: { waitMs }, signal }) {
      const until = time.mono() + waitMs
      let watched = params.id
      for (;;) {
        const change = awaitChange((hear) => hub.onChanged(watched, hear), timers, signal)
        const result = await engine.read((tx) => runResult(tx, params.id))
        const left = until - time.mono()
        if (!result || result.ended || left <= 0 || signal.aborted) {
          change.drop()
          return result ?? missing(params.id)
        }
        if (result.run === watched) await change.wait(Math.min(left, settings.pollMs))
        else change.drop()
        watched = result.run
      }
    },

    async followRun({ params: { id }, lastEventId, stream }) {
      const run = await engine.read((tx) => runResult(tx, id))
      if (!run) return missing(id)
      return stream(followRun(engine, id, streamPosition(lastEventId)))
    },

    async followRuns({ lastEventId, stream }) {
      return stream(followRuns(engine, lastEventId !== null))
    },

    async followStream({ params: { id, name }, lastEventId, stream }) {
      const run = await engine.read((tx) => runResult(tx, id))
      if (!run) return missing(id)
      return stream(followStream(engine, id, name, placeIn(lastEventId, INT_MAX)))
    },

    async readLogs({ params: { id }, query: { attempt = null, after, limit } }) {
      const from = logPlace(after, attempt)
      const page = await engine.read((tx) => logPage(tx, id, attempt, from, limit))
      if (!page) return missing(id)
      const { lines, more, over } = page
      const last = lines.at(-1)
      return {
        run: id,
        lines: lines.map(shownLine),
        next: last ? `${last.attempt}:${last.n}` : null,
        over: over && !more,
      }
    },

    async followLogs({ params: { id }, query: { attempt = null, after }, lastEventId, stream }) {
      const run = await engine.read((tx) => runResult(tx, id))
      if (!run) return missing(id)
      return stream(followLogs(engine, id, attempt, logPlace(lastEventId ?? after, attempt)))
    },

    async signalRun({ params: { id }, body, actor, once }) {
      const command = {
        run: id,
        id: body.id ?? ids.next('sig'),
        name: body.name,
        payload: body.payload === undefined ? null : encode(body.payload),
        by: actor,
      }
      return once((tx) => sendSignal(tx, command, settings))
    },

    cancelRun: ({ params: { id }, body, actor, once }) =>
      once((tx, context) =>
        cancel(tx, { run: id, by: actor, reason: body.reason ?? null }, context),
      ),

    pauseRun: ({ params: { id }, body, actor, once }) =>
      once((tx) => pause(tx, id, actor, body.why ?? null)),

    resumeRun: ({ params: { id }, actor, once }) => once((tx) => resume(tx, id, actor)),

    retryRun: ({ params: { id }, body, actor, once }) => {
      const command = {
        run: id,
        id: body.id ?? ids.next('run'),
        from: body.from ?? null,
        version: body.version ?? null,
        by: actor,
      }
      return once((tx, context) => retry(tx, command, context))
    },

    handBackRun: ({ params: { id }, body, actor, once }) =>
      once((tx, context) => takeFrom(tx, id, actor, body.reason ?? null, context)),

    moveRun: ({ params: { id }, body, actor, once }) =>
      once((tx, context) => reversion(tx, id, body.version, actor, context)),

    async listApprovals({ query }) {
      const from = placeOf('approvals', query.cursor)
      if (!from.ok) return from
      const page = await engine.read((tx) =>
        approvalInbox(tx, {
          run: query.run ?? '',
          decider: query.decider ?? '',
          olderThanMs: query.olderThanMs ?? 0,
          cursor: from.place,
          limit: query.limit,
        }),
      )
      return paged('approvals', page)
    },

    decideApproval: ({ params: { id }, body, actor, once }) => {
      const command = {
        approval: id,
        decision: body.decision,
        by: actor,
        reason: body.reason ?? null,
        payload: body.payload === undefined ? null : encode(body.payload),
      }
      return once((tx) => decide(tx, command, settings))
    },
  }
}

/** A value that JSON cannot carry is a fault of its item alone. */
const guardedItem = (make: () => StartItem | Refusal): StartItem | Refusal => {
  try {
    return make()
  } catch (error) {
    return invalid([{ path: '$.input', message: (error as Error).message }], 'item')
  }
}
