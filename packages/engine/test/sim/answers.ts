// What was acknowledged is there (S6): every answer of the engine is held against the shadow at the moment it is given,
// and what it promised is kept for the audit.
import type {
  AttemptWrite,
  ClaimAnswer,
  ClaimRequest,
  RenewRequest,
  WriteAnswer,
} from '../../src/model/work.ts'
import type { Outcome } from '../../src/kernel/outcome.ts'
import type { StartCommand } from '../../src/model/start.ts'
import type { StartAnswer } from '../../src/transitions/start.ts'
import { ended } from './rules.ts'
import type { Shadow } from './shadow.ts'
import type { World } from './world.ts'

/** A promise that must still hold at the end: a query that finds a row. */
export interface Acknowledged {
  readonly what: string
  readonly run: string
  readonly sql: string
  readonly params: readonly string[]
}

export class Answers {
  readonly acknowledged: Acknowledged[] = []
  /** `run#attempt` of every end that a holder has sent. */
  readonly endsSent = new Set<string>()
  /** `run#attempt` of what a holder held and left out of its list. */
  readonly unnamed = new Set<string>()
  readonly #keys = new Map<string, { readonly series: string; readonly input: string | null }>()
  /** What every copy so far of a claim, by session and number, has excepted: whichever was applied did. */
  readonly #excepted = new Map<string, readonly string[]>()
  readonly #world: World
  readonly #shadow: Shadow

  constructor(world: World, shadow: Shadow) {
    this.#world = world
    this.#shadow = shadow
  }

  #say(rule: string, message: string): void {
    this.#world.violate(rule, message)
  }

  #promise(what: string, run: string, sql: string, ...params: string[]): void {
    this.acknowledged.push({ what, run, sql, params })
  }

  /** A write has arrived: whether its attempt and session hold the run now. */
  arrived(session: string, write: AttemptWrite): boolean {
    if (write.end) this.endsSent.add(`${write.run}#${write.attempt}`)
    const run = this.#shadow.runs.get(write.run)
    return run !== undefined && run.attempt === write.attempt && run.session === session
  }

  /** A renewal has arrived, with what its session lets go of. */
  listed(request: RenewRequest): void {
    for (const { run, attempt } of request.letGo) this.endsSent.add(`${run}#${attempt}`)
    const { held } = request
    if (!held || !('runs' in held)) return
    const named = new Set(held.runs.map(({ run }) => run))
    for (const id of this.#shadow.heldBy.get(request.session) ?? []) {
      const run = this.#shadow.runs.get(id)
      if (run && (run.claim ?? 0) <= held.claim && !named.has(id))
        this.unnamed.add(`${id}#${run.attempt}`)
    }
  }

  write(session: string, write: AttemptWrite, answer: WriteAnswer, heldAtArrival: boolean): void {
    if (!answer.ok) return
    const shadow = this.#shadow
    const place = `${write.run}#${write.attempt}`
    const run = shadow.runs.get(write.run)
    if (!run) return
    if (shadow.holders.get(place) !== session)
      return this.#say(
        'S2',
        `a write of ${place} by ${session} was accepted; ${shadow.holders.get(place)} held it`,
      )
    if (answer.ended === null) {
      if (!heldAtArrival)
        return this.#say(
          'S2',
          `a write of ${place} by ${session} was accepted after it had ended (${shadow.attemptEnds.get(place)})`,
        )
      if (write.end && write.end.kind !== 'suspend')
        this.#say('RUN-07', `the end (${write.end.kind}) of ${place} was answered as if it went on`)
    } else if (!shadow.attemptEnds.has(place))
      this.#say('S6', `the end of ${place} was acknowledged and is not recorded`)
    if (answer.ended === 'canceled') return
    // after an attempt that has ended others may have recorded the same keys anew
    if (run.attempt !== write.attempt) return
    const entries = shadow.entriesOf(write.run)
    for (const entry of write.entries) {
      const kept = entries.get(entry.key)
      if (kept?.output !== entry.output || kept.error !== entry.error)
        this.#say(
          'S6',
          `${entry.key} of ${write.run} was acknowledged and is ${kept ? 'another' : 'not there'}`,
        )
    }
    if (
      write.end?.kind === 'complete' &&
      run.status === 'succeeded' &&
      run.attempt === write.attempt &&
      run.output !== write.end.output
    )
      this.#say('S6', `${write.run} was completed with ${write.end.output} and has ${run.output}`)
  }

  /** A copy of a claim has arrived: the one that is applied decides what all are answered. */
  claiming({ session, claim, except }: ClaimRequest): void {
    const key = `${session}#${claim}`
    const others = this.#excepted.get(key) ?? except
    this.#excepted.set(
      key,
      others.filter((run) => except.includes(run)),
    )
  }

  claim(request: ClaimRequest, answer: ClaimAnswer): void {
    if (!answer.ok) return
    const excepted = this.#excepted.get(`${request.session}#${request.claim}`) ?? []
    for (const { run, attempt, journal, entries } of answer.runs) {
      const holder = this.#shadow.holders.get(`${run}#${attempt}`)
      if (holder !== request.session)
        this.#say(
          'RUN-05',
          `${run}#${attempt} was given to ${request.session}; ${holder} claimed it`,
        )
      if (excepted.includes(run)) this.#say('RUN-05', `${run} was given although it was excepted`)
      if (journal.some((entry, i) => entry.n !== i + 1) || journal.length > entries)
        this.#say('RUN-26', `the journal of ${run} was given out of order`)
    }
    const given = new Set(answer.runs.map(({ run }) => run))
    for (const id of this.#shadow.heldBy.get(request.session) ?? [])
      if (this.#shadow.runs.get(id)?.claim === request.claim && !given.has(id))
        this.#say(
          'RUN-10',
          `${id} is held under the claim ${request.claim} and its answer lacks it`,
        )
    if (answer.runs.length > request.most)
      this.#say('RUN-05', `${answer.runs.length} runs were given for ${request.most}`)
  }

  start(command: StartCommand, answer: StartAnswer): void {
    if (!answer.ok) return
    const run = this.#shadow.runs.get(answer.id)
    if (!run) return this.#say('S6', `${answer.id} was acknowledged and is not there`)
    if (answer.started && answer.id !== command.id)
      this.#say('S22', `${command.id} was started as ${answer.id}`)
    this.#promise('start', answer.id, 'select 1 from runs where id = ?', answer.id)
    const key = command.key ?? null
    if (key === null) return
    const place = JSON.stringify([command.owner ?? '', command.workflow, key])
    const known = this.#keys.get(place)
    if (!known) this.#keys.set(place, { series: run.series, input: command.input })
    else if (known.series !== run.series)
      this.#say('S22', `the key ${place} named ${known.series} and names ${run.id}`)
    else if (known.input !== command.input)
      this.#say('RUN-18', `the key ${place} was answered although its input differs`)
  }

  signal(command: { run: string; id: string }, answer: Outcome<{ run: string; id: string }>): void {
    if (!answer.ok) return
    if (
      !this.#shadow.signalsOf(answer.run).has(command.id) &&
      !this.#inSeries(answer.run, command.id)
    )
      this.#say(
        'S6',
        `the signal ${command.id} to ${command.run} was acknowledged and is not there`,
      )
    this.#promise('signal', answer.run, 'select 1 from signals where id = ?', command.id)
  }

  #inSeries(run: string, signal: string): boolean {
    const series = this.#shadow.runs.get(run)?.series ?? run
    return (this.#shadow.series.get(series) ?? []).some((id) =>
      this.#shadow.signalsOf(id).has(signal),
    )
  }

  decide(command: { approval: string; decision: string }, answer: Outcome<object>): void {
    if (!answer.ok) return
    const state = this.#shadow.approvals.get(command.approval)?.state
    if (state !== command.decision)
      this.#say('S6', `${command.approval} was acknowledged ${command.decision} and is ${state}`)
    this.#promise(
      'decision',
      command.approval,
      'select 1 from approvals where id = ? and state = ?',
      command.approval,
      command.decision,
    )
  }

  cancel(answer: Outcome<{ run: string }>): void {
    if (!answer.ok) return
    const run = this.#shadow.runs.get(answer.run)
    if (run?.status !== 'canceling' && run?.status !== 'canceled')
      this.#say('S6', `the cancel of ${answer.run} was acknowledged and it is ${run?.status}`)
    this.#promise(
      'cancel',
      answer.run,
      `select 1 from runs where id = ? and status = 'canceled'`,
      answer.run,
    )
  }

  pause(answer: Outcome<{ run: string }>): void {
    if (!answer.ok) return
    const run = this.#shadow.runs.get(answer.run)
    if (run && !ended(run.status) && run.pause_requested_at === null)
      this.#say('S6', `the pause of ${answer.run} was acknowledged and is not recorded`)
  }
}
