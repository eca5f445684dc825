// The store and the model side by side: each command is done to both, and what comes back is compared.
import type { ExpectStatic } from 'vitest'
import type { ClaimedRun, EndReport } from '../../src/model/work.ts'
import type { Session, TestStore } from '../support/store.ts'
import { definition, entry } from '../support/store.ts'
import type { EndKind, Kind, ModelRun } from './model.ts'
import * as model from './model.ts'

export type Command =
  | { do: 'start'; key: number | null; input: number; limited: boolean; delayed: boolean }
  | { do: 'claim'; session: number; most: number }
  | { do: 'checkpoint' | 'take'; hold: number }
  | { do: 'record'; hold: number; kind: Kind }
  | { do: 'end'; hold: number; kind: EndKind }
  | { do: 'stand'; hold: number; kind: Kind }
  | { do: 'bounce'; session: number; times: number }
  | { do: 'signal'; run: number; id: number }
  | { do: 'decide' | 'cancel' | 'pause' | 'resume'; run: number }
  | { do: 'kill' | 'close'; session: number }
  | { do: 'wake'; ms: number }
  | { do: 'admit' }

const reports: Record<EndKind, EndReport> = {
  complete: { kind: 'complete', output: '1' },
  fail: { kind: 'fail', reason: 'error', note: 'x', error: '{}' },
  retry: { kind: 'fail', reason: 'error', note: 'x', error: '{}', retryInMs: 500 },
  suspend: { kind: 'suspend', keys: [] },
  shutdown: { kind: 'hand_back', reason: 'shutdown' },
  marker: { kind: 'hand_back', reason: 'marker' },
  park: { kind: 'park', reason: 'nondeterminism', note: 'x' },
}

/** The store and the model side by side. */
export class World {
  readonly runs: ModelRun[] = []
  readonly holds: { session: Session; run: ClaimedRun }[] = []
  readonly keys = new Map<number, { run: ModelRun; input: number }>()
  readonly ends = new Map<string, string>()
  sessions: Session[] = []
  names = 0
  readonly t: TestStore
  readonly expect: ExpectStatic
  constructor(t: TestStore, expect: ExpectStatic) {
    this.t = t
    this.expect = expect
  }

  get now(): number {
    return this.t.clock.time.now()
  }
  async register(at: number): Promise<void> {
    this.sessions[at] = await this.t.session({
      embedded: true,
      definitions: [definition('w'), definition('l', { limits: [{ key: 'k', value: 1 }] })],
    })
  }
  pick<T>(list: readonly T[], at: number): T | undefined {
    return list.length === 0 ? undefined : list[at % list.length]
  }

  async run(command: Command): Promise<void> {
    switch (command.do) {
      case 'start':
        return this.start(command)
      case 'claim':
        return this.claim(command)
      case 'checkpoint':
      case 'take':
      case 'record':
      case 'stand':
      case 'end':
        return this.write(command)
      case 'bounce':
        return this.bounce(command)
      case 'signal':
      case 'decide':
      case 'cancel':
      case 'pause':
      case 'resume':
        return this.tell(command)
      case 'kill':
      case 'close':
        return this.lose(command)
      case 'wake':
        return this.wake(command.ms)
      case 'admit':
        return this.admit()
    }
  }

  async start({ key, input, limited, delayed }: Command & { do: 'start' }): Promise<void> {
    const id = `run_${String(++this.names).padStart(4, '0')}`
    const answer = await this.t.startAnswer(limited ? 'l' : 'w', {
      id,
      input: JSON.stringify(input),
      ...(key === null ? {} : { key: `key${key}${limited}` }),
      ...(delayed ? { delayMs: 700 } : {}),
    })
    const name = key === null ? -this.names - 1 : key * 2 + (limited ? 1 : 0)
    const known = this.keys.get(name)
    if (known && known.input !== input)
      return this.expect(answer).toMatchObject({ code: 'key_reused' })
    this.expect(answer).toMatchObject({ ok: true, id: known?.run.id ?? id, started: !known })
    if (known) return
    const run = model.newRun(id, limited)
    const behind = this.runs.some(
      (each) => each.limited && (model.holdsKey(each) || model.inLine(each, this.now)),
    )
    if (delayed) Object.assign(run, { status: 'waiting', waitOn: 'slot', readyAt: this.now + 700 })
    else if (limited && behind) Object.assign(run, { status: 'waiting', waitOn: 'slot' })
    this.runs.push(run)
    this.keys.set(name, { run, input })
  }

  async claim({ session: at, most }: Command & { do: 'claim' }): Promise<void> {
    const session = this.sessions[at]
    if (!session) return
    await this.t.pass('poll-lanes')
    const queued = this.runs.filter(({ status }) => status === 'queued')
    const mine = this.runs.filter((run) => run.session === session.id)
    const claimed = await session.claim(most)
    const suspects = [...queued, ...mine].filter(({ losses }) => losses >= 2)
    if (suspects.length === 0) this.expect(claimed).toHaveLength(Math.min(most, queued.length))
    if (mine.some(({ losses }) => losses >= 2)) this.expect(claimed).toEqual([])
    for (const run of claimed) {
      const known = queued.find(({ id }) => id === run.run)
      this.expect(known, `${run.run} was claimed and was not queued`).toBeDefined()
      if (!known) continue
      if (known.losses >= 2) this.expect([mine.length, claimed.length]).toEqual([0, 1])
      this.expect(run.attempt).toBe(known.attempt + 1)
      this.expect(run.entries).toBe(known.entries)
      this.expect(run.waits.map(({ key }) => key)).toEqual(model.live(known).map(({ key }) => key))
      Object.assign(known, { status: 'running', attempt: run.attempt, session: session.id })
      this.holds.push({ session, run })
    }
  }

  async write(command: Command & { hold: number }): Promise<void> {
    // mostly one of the last claims, which may still hold; now and then an old one
    const recent = command.hold % 5 === 0 ? this.holds : this.holds.slice(-3)
    const hold = this.pick(recent, command.hold)
    const run = this.runs.find(({ id }) => id === hold?.run.run)
    if (!hold || !run) return
    const { session, run: claimed } = hold
    const mine = model.held(run) && run.attempt === claimed.attempt && run.session === session.id
    const now = this.now
    if (command.do === 'end') {
      const keys = model.live(run).map(({ key }) => key)
      const report =
        command.kind === 'suspend' ? { kind: 'suspend' as const, keys } : reports[command.kind]
      const repeat = model.repeats(run, claimed.attempt, session.id, command.kind)
      const answer = await session.end(claimed, report)
      if (!mine)
        return this.expect(answer).toMatchObject(repeat ? { ok: true } : { code: 'stale_attempt' })
      const ended = model.end(run, command.kind, now)
      return this.expect(answer).toMatchObject({ ok: true, ended: ended ? run.status : null })
    }
    const next = run.entries + 1
    if (command.do === 'record' || command.do === 'stand') {
      const { kind } = command
      const key = `w${run.waits.length + 1}`
      const dueAt = kind === 'time' ? now + 300 : kind === 'approval' ? now + 86_400_000 : null
      const asks = { approval: { prompt: '?', data: null, deciders: [] } }
      const wait = { kind, name: 'go', ...(dueAt === null ? {} : { dueAt }) }
      const keys = [...model.live(run).map((each) => each.key), key]
      const answer = await session.write(claimed, {
        waits: [{ key, ...wait, ...(kind === 'approval' ? asks : {}) }],
        ...(command.do === 'stand' ? { end: { kind: 'suspend', keys } } : {}),
      })
      if (!mine) {
        const repeat =
          command.do === 'stand' && model.repeats(run, claimed.attempt, session.id, 'suspend')
        return this.expect(answer).toMatchObject(repeat ? { ok: true } : { code: 'stale_attempt' })
      }
      run.waits.push({ key, kind, dueAt, state: 'open' })
      model.settle(run, now)
      const ended = command.do === 'stand' && model.end(run, 'suspend', now)
      const satisfied = model.live(run).filter(({ state }) => state !== 'open')
      return this.expect(answer).toMatchObject({
        ok: true,
        ended: ended ? run.status : null,
        satisfied: ended ? [] : satisfied.map(({ key: each, state }) => ({ key: each, state })),
      })
    }
    const ready = model.live(run).find(({ state }) => state !== 'open')
    const take = command.do === 'take' ? ready : undefined
    const answer = await session.write(claimed, {
      entries: [take ? entry(next, take.key, { kind: take.kind }) : entry(next)],
    })
    if (!mine) return this.expect(answer).toMatchObject({ code: 'stale_attempt' })
    this.expect(answer).toMatchObject({
      ok: true,
      directive: run.status === 'canceling' ? 'cancel' : run.pause ? 'pause' : null,
    })
    Object.assign(run, { entries: next, losses: 0, handBacks: 0 })
    if (!take) return
    take.state = 'gone'
    model.settle(run, now)
  }

  async bounce({ session, times }: Command & { do: 'bounce' }): Promise<void> {
    for (let i = 0; i < times; i++) {
      const before = this.holds.length
      await this.claim({ do: 'claim', session, most: 1 })
      if (this.holds.length === before) return
      const last = this.holds.at(-1)
      const run = this.runs.find(({ id }) => id === last?.run.run)
      if (!last || !run) return
      await last.session.end(last.run, reports.marker)
      model.end(run, 'marker', this.now)
      this.check()
      await this.wake(1_000)
    }
  }

  async tell(command: Command & { run: number }): Promise<void> {
    const run = this.pick(this.runs, command.run)
    if (!run) return
    const { engine } = this.t
    const { id } = run
    const over = model.terminal(run)
    if (command.do === 'signal') {
      const duplicate = run.signals.some((each) => each.id === `s${command.id}`)
      const answer = await engine.signal({
        run: id,
        id: `s${command.id}`,
        name: 'go',
        payload: '1',
        by: null,
      })
      if (duplicate || over)
        return this.expect(answer).toMatchObject(
          duplicate ? { ok: true, duplicate } : { code: 'already_ended' },
        )
      this.expect(answer).toMatchObject({ ok: true, duplicate: false })
      run.signals.push({ id: `s${command.id}`, takenBy: null })
      return model.woken(run, model.settle(run, this.now))
    }
    if (command.do === 'decide') {
      const wait = run.waits.find(({ kind }) => kind === 'approval')
      const answer = await engine.decide({
        approval: `${id}:${wait?.key ?? 'none'}`,
        decision: 'approved',
        by: 'ana',
        reason: null,
        payload: null,
      })
      if (wait?.state !== 'open')
        return this.expect(answer).toMatchObject({
          ok: false,
          code: wait ? 'already_decided' : 'not_found',
        })
      this.expect(answer).toMatchObject({ ok: true })
      wait.state = 'satisfied'
      return model.woken(run, true)
    }
    if (command.do === 'cancel') {
      this.expect(await engine.cancel({ run: id, by: 'ana', reason: null })).toMatchObject({
        ok: !over,
      })
      if (over) return
      if (model.held(run)) run.status = 'canceling'
      else Object.assign(run, { status: 'canceled', waitOn: null, readyAt: null })
      if (run.status === 'canceled') for (const wait of run.waits) wait.state = 'gone'
      return
    }
    if (command.do === 'pause') {
      this.expect(await engine.pause(id, 'ana', null)).toMatchObject({ ok: !over })
      if (over || run.pause) return
      run.pause = true
      if (!model.held(run)) run.status = 'paused'
      return
    }
    this.expect(await engine.resume(id, 'ana')).toMatchObject({ ok: !over && run.pause })
    if (!over && run.pause) model.resume(run, this.now)
  }

  async lose({ do: how, session: at }: Command & { session: number }): Promise<void> {
    const session = this.sessions[at]
    if (!session) return
    const mine = this.runs.filter((run) => run.session === session.id)
    if (how === 'kill') {
      await this.t.kill(session)
      mine.forEach(model.lose)
    } else {
      this.expect(await session.closeSession()).toEqual({ ok: true, handedBack: mine.length })
      for (const run of mine) model.end(run, 'shutdown', this.now)
    }
    await this.register(at)
  }

  async wake(ms: number): Promise<void> {
    this.t.later(ms)
    await this.t.pass('wake-due')
    for (const run of this.runs)
      if (run.status === 'waiting' && run.readyAt !== null && run.readyAt <= this.now) {
        model.settle(run, this.now)
        model.due(run)
      }
  }

  /** Which waiter is admitted is the line's affair; that one is, and no more than fit, is promised. */
  async admit(): Promise<void> {
    await this.t.settle('admit-waiting')
    for (const run of this.runs)
      if (model.inLine(run, this.now) && this.t.run(run.id)['status'] === 'queued')
        Object.assign(run, { status: 'queued', waitOn: null, readyAt: null })
    const holders = this.runs.filter(model.holdsKey).length
    this.expect(holders).toBeLessThanOrEqual(1)
    if (this.runs.some((run) => run.limited && model.inLine(run, this.now)))
      this.expect(holders).toBe(1)
    for (const run of this.runs)
      if (!run.limited) this.expect(model.inLine(run, this.now) && run.readyAt === null).toBe(false)
  }

  /** Every run is what the model says it is; an end stays as it was. */
  check(): void {
    const rows = new Map(this.t.sql('select * from runs').map((row) => [row['id'], row]))
    const found = this.runs.map(({ id }) => said(rows.get(id) ?? {}))
    const expected = this.runs.map((run) =>
      said({ ...run, wait_on: run.waitOn, ready_at: run.readyAt }),
    )
    if (found.join('\n') !== expected.join('\n')) this.expect(found).toEqual(expected)
    for (const run of this.runs.filter(model.terminal)) {
      const row = JSON.stringify(rows.get(run.id))
      const before = this.ends.get(run.id)
      if (before === undefined) this.ends.set(run.id, row)
      else if (before !== row) this.expect(row).toBe(before)
    }
  }
}

const COLUMNS = ['id', 'status', 'wait_on', 'ready_at', 'attempt', 'session', 'entries']
const said = (row: object): string =>
  COLUMNS.map((column) => `${column}=${String((row as Record<string, unknown>)[column])}`).join(' ')
