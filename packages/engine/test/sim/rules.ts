// What must hold after every committed transaction, judged from what it changed. Each rule is written from the promise,
// not from the code, and names it.
import type { Change, RunRow, SessionRow, Shadow } from './shadow.ts'
import type { Usage } from './slot-table.ts'
import { limitsOf } from './slot-table.ts'
import type { World } from './world.ts'

/** Where a run may go from a status, and from there stay. */
const PATHS: Readonly<Record<string, readonly string[]>> = {
  queued: ['queued', 'running', 'waiting', 'paused', 'canceled', 'failed'],
  running: [
    'running',
    'canceling',
    'queued',
    'waiting',
    'paused',
    'succeeded',
    'failed',
    'canceled',
  ],
  waiting: ['waiting', 'queued', 'paused', 'canceled', 'failed'],
  paused: ['paused', 'queued', 'waiting', 'canceled', 'failed'],
  canceling: ['canceling', 'canceled'],
}

/** What becomes of a run whose attempt ended so. */
const ENDS: Readonly<Record<string, readonly string[]>> = {
  completed: ['succeeded'],
  failed: ['failed', 'waiting', 'paused'],
  suspended: ['waiting', 'paused'],
  handed_back: ['queued', 'waiting', 'paused'],
  expired: ['queued', 'paused', 'failed', 'canceled'],
  lost: ['queued', 'paused', 'failed', 'canceled'],
  canceled: ['canceled'],
  stale: ['failed'],
  revoked: ['queued', 'waiting', 'paused', 'failed', 'canceled'],
}

const held = (status: string): boolean => status === 'running' || status === 'canceling'
export const ended = (status: string): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'canceled'

export interface Numbers {
  readonly leaseMs: number
  readonly lossesMax: number
  readonly lossesSuspect: number
  readonly handBacksMax: number
  /** Tries that the workflow's own retry gives. */
  readonly triesOf: (workflow: string) => number
  /** Whether the holder of `run#attempt` has sent its end. */
  readonly endSent: (place: string) => boolean
  /** Whether the holder of `run#attempt` has left it out of a list of what it holds. */
  readonly unnamed: (place: string) => boolean
  /** Forward jumps of the store's clock that were too small to be noticed, since this true time. */
  readonly unnoticedSince: (at: number) => number
}

export class Rules {
  readonly #world: World
  readonly #shadow: Shadow
  readonly #usage: Usage
  readonly #numbers: Numbers
  /** Series and the ids of signals that it has been sent. */
  readonly #signalIds = new Set<string>()
  /** `run#attempt` of what its pod has adopted. */
  readonly #adoptions = new Set<string>()

  constructor(world: World, shadow: Shadow, usage: Usage, numbers: Numbers) {
    this.#world = world
    this.#shadow = shadow
    this.#usage = usage
    this.#numbers = numbers
  }

  check(change: Change): void {
    const say = (rule: string, message: string): void => this.#world.violate(rule, message)
    for (const { before, after } of change.sessions) this.#session(before, after, change, say)
    this.#journal(change, say)
    this.#waits(change, say)
    this.#signals(change, say)
    this.#approvals(change, say)
    for (const { before, after } of change.runs) this.#run(before, after, change, say)
    for (const { key, used, limit } of this.#usage.take(change, this.#shadow))
      say('S5', `${used} units of ${key} are held; the limit is ${limit}`)
    this.#receipts(change, say)
    this.#locks(change, say)
  }

  #run(before: RunRow | undefined, after: RunRow, change: Change, say: Say): void {
    const shadow = this.#shadow
    const id = after.id
    if (!before) {
      const successor = after.series !== id
      if (!/^(queued|waiting)$/.test(after.status) && !(successor && after.status === 'paused'))
        say('RUN-19', `${id} was born ${after.status}`)
      if (after.attempt !== 0) say('S4', `${id} was born with attempt ${after.attempt}`)
      // one that has been written since was let out of the line by its order, in the same commit
      if (after.status === 'queued' && after.series === id && after.rev === 1)
        this.#inLine(after, change, say)
      if (after.retry_of !== null && !successor) this.#again(id, after.retry_of, say)
      return
    }
    if (ended(before.status)) {
      if (
        before.status !== after.status ||
        before.reason !== after.reason ||
        before.ended_at !== after.ended_at ||
        before.output !== after.output ||
        before.error !== after.error
      )
        say(
          'S3',
          `${id} had ended ${before.status} (${before.reason}) and is ${after.status} (${after.reason})`,
        )
      return
    }
    if (!PATHS[before.status]?.includes(after.status))
      say(
        before.status === 'canceling' ? 'RUN-14' : 'RUN-02',
        `${id} went from ${before.status} to ${after.status}`,
      )
    this.#attempt(before, after, change, say)
    this.#counts(before, after, change, say)
    this.#pause(before, after, change, say)
    if (after.entries < before.entries) say('S6', `${id} lost entries`)
    if (before.cancel_requested_at !== null && after.cancel_requested_at === null)
      say('RUN-14', `${id} forgot its cancel`)
    if (before.status === 'waiting' && after.status === 'queued') this.#woken(before, change, say)
    if (after.status === 'waiting' && after.wait_on !== 'slot') this.#standing(after, say)
    if (ended(after.status)) this.#ended(after, say)
    if (after.reason === 'nondeterminism' && before.reason !== after.reason)
      say('RUN-26', `${id} departs from its journal: ${after.note}`)
    if (before.claim === null && after.claim !== null && !shadow.sessions.has(after.session ?? ''))
      say('S1', `${id} is held by ${after.session}, which is no session`)
  }

  /** RUN-20: what is started again has ended, and so has the series that it belongs to. */
  #again(id: string, of: string, say: Say): void {
    const first = this.#shadow.runs.get(of)
    if (!first) return
    for (const each of [of, ...(this.#shadow.series.get(first.series) ?? [])]) {
      const status = this.#shadow.runs.get(each)?.status ?? 'failed'
      if (!ended(status))
        say('RUN-20', `${of} was started again as ${id} while ${each} is ${status}`)
    }
  }

  /** SLOT-03: a new run passes nobody who was in line for one of its slots. */
  #inLine(run: RunRow, change: Change, say: Say): void {
    const keys = limitsOf(run, this.#shadow).map(({ key }) => key)
    if (keys.length === 0) return
    for (const other of this.#shadow.active) {
      const row = this.#shadow.runs.get(other)
      if (row?.status !== 'waiting' || row.wait_on !== 'slot' || row.reason === 'no_executor')
        continue
      if (row.ready_at !== null && row.ready_at > change.now) continue
      if (change.runs.some(({ after }) => after.id === other)) continue
      if (limitsOf(row, this.#shadow).some(({ key }) => keys.includes(key)))
        say('SLOT-03', `${run.id} was admitted at its start, before ${other}, which is in line`)
    }
  }

  /** S1, S2, S4, RUN-05, RUN-17: who holds the run, and how its attempts begin and end. */
  #attempt(before: RunRow, after: RunRow, change: Change, say: Say): void {
    const { id } = after
    const shadow = this.#shadow
    if (after.attempt !== before.attempt) {
      if (after.attempt !== before.attempt + 1 || before.status !== 'queued')
        say(
          'S4',
          `${id} went from attempt ${before.attempt} (${before.status}) to ${after.attempt}`,
        )
      const session = shadow.sessions.get(after.session ?? '')
      if (session?.state !== 'live')
        say('S1', `${id} was claimed by ${after.session}, which is ${session?.state ?? 'unknown'}`)
      else if (session.claim_no !== after.claim)
        say(
          'RUN-05',
          `${id} was claimed under ${after.claim}; the session is at claim ${session.claim_no}`,
        )
      this.#isolated(after, say)
      for (const name of [`queue:${after.queue}`, `workflow:${after.workflow}`]) {
        const until = shadow.pauses.get(name)
        if (until !== undefined && (until === null || until > change.now))
          say('RUN-16', `${id} was claimed although ${name} is paused`)
      }
      return
    }
    if (held(before.status) && held(after.status)) {
      const adopted = change.events.some(
        (each) => each.run === id && each.kind === 'attempt.adopted',
      )
      if (adopted) this.#adopted(before, after, say)
      else if (
        before.session !== after.session ||
        before.claim !== after.claim ||
        before.leased_at !== after.leased_at
      )
        say('S1', `${id} changed hands within attempt ${after.attempt}`)
      return
    }
    if (!held(before.status)) return
    const end = change.attempts.find((each) => each.run === id)
    if (!end) return say('S4', `${id} let go of attempt ${before.attempt} without a row of history`)
    const own = /^(completed|failed|suspended|stale)$/.test(end.end)
    const asked =
      end.end === 'handed_back' && /^(chain|pause|canceled|lease_lost)$/.test(end.reason ?? '')
    if ((own || asked) && !this.#numbers.endSent(`${id}#${before.attempt}`))
      say('S2', `${id}#${before.attempt} was ${end.end}, and its holder had not said so`)
    if (end.reason === 'unknown_here' && !this.#numbers.unnamed(`${id}#${before.attempt}`))
      say('RUN-10', `${id}#${before.attempt} was handed back, and its holder had listed it`)
    if (end.attempt !== before.attempt || end.session !== before.session)
      say(
        'S2',
        `attempt ${end.attempt} of ${end.session} ended on ${id}, which ${before.session} holds by attempt ${before.attempt}`,
      )
    const expected = before.status === 'canceling' ? ['canceled'] : (ENDS[end.end] ?? [])
    if (!expected.includes(after.status))
      say(
        'RUN-17',
        `${id} was ${before.status}; its attempt was ${end.end} and it is ${after.status}`,
      )
  }

  /** RAIL-14: an attempt goes once, from who launched it to the one session that was made for it. */
  #adopted(before: RunRow, after: RunRow, say: Say): void {
    const place = `${after.id}#${after.attempt}`
    const session = this.#shadow.sessions.get(after.session ?? '')
    if (before.status !== 'running' || before.leased_at !== after.leased_at)
      say('RAIL-14', `${place} was adopted as a ${before.status} one, or given a new lease of life`)
    if (session?.state !== 'live' || session.claim_no !== 1 || after.claim !== 1)
      say('RAIL-14', `${place} was adopted by ${after.session}, which is ${session?.state}`)
    if (this.#adoptions.has(place)) say('RAIL-14', `${place} was adopted twice`)
    this.#adoptions.add(place)
  }

  /** RUN-12: a run that was lost twice in a row is driven alone. */
  #isolated(run: RunRow, say: Say): void {
    const held = this.#shadow.heldBy.get(run.session ?? '') ?? new Set<string>()
    if (held.size === 1) return
    for (const id of held) {
      const other = this.#shadow.runs.get(id)
      if (other?.suspect_since !== null && other !== undefined)
        say(
          'RUN-12',
          `${run.session} holds ${id}, which is suspect, together with ${held.size - 1} others`,
        )
    }
  }

  /** RUN-12, S4: what is charged to whom. */
  #counts(before: RunRow, after: RunRow, change: Change, say: Say): void {
    const { id } = after
    const end = change.attempts.find((each) => each.run === id)?.end
    const progressed = after.entries > before.entries
    const resumed = change.events.some((each) => each.run === id && each.kind === 'run.resumed')
    const lost = end === 'expired' || end === 'lost'
    const fixed = ended(after.status) || after.status === 'canceling'
    const losses = progressed || resumed ? 0 : before.losses + (lost ? 1 : 0)
    if (after.losses !== losses && !fixed)
      say('RUN-12', `${id} counts ${after.losses} losses in a row; expected ${losses}`)
    const suspect = losses >= this.#numbers.lossesSuspect
    if (!fixed && (after.suspect_since !== null) !== suspect)
      say('RUN-12', `${id} has ${losses} losses in a row and is ${suspect ? 'not ' : ''}suspect`)
    if (lost && losses >= this.#numbers.lossesMax && !ended(after.status))
      say('RUN-12', `${id} was lost ${losses} times in a row and goes on`)
    if (
      after.status === 'failed' &&
      after.reason === 'attempts_exhausted' &&
      losses < this.#numbers.lossesMax
    )
      say('RUN-12', `${id} failed for ${losses} losses`)
    if (
      !fixed &&
      !progressed &&
      !resumed &&
      end !== 'handed_back' &&
      after.hand_backs !== before.hand_backs
    )
      say('RUN-12', `${id} counts ${after.hand_backs} hand-backs; expected ${before.hand_backs}`)
    if (end === 'handed_back' && after.hand_backs > before.hand_backs + 1)
      say('RUN-12', `${id} counts one hand-back ${after.hand_backs - before.hand_backs} times`)
    if (after.failures > before.failures && end !== 'failed' && end !== 'revoked')
      say('S4', `${id} was charged a try although its attempt was ${end ?? 'going on'}`)
    if (after.failures > this.#numbers.triesOf(after.workflow) && !ended(after.status))
      say('S4', `${id} has failed ${after.failures} times and goes on`)
  }

  /** RUN-16: a pause takes effect at the next end of an attempt and holds until it is resumed. */
  #pause(before: RunRow, after: RunRow, change: Change, say: Say): void {
    const { id } = after
    if (before.pause_requested_at === null || ended(after.status)) return
    const resumed = change.events.some((each) => each.run === id && each.kind === 'run.resumed')
    if (after.pause_requested_at === null && !resumed)
      say('RUN-16', `${id} forgot its pause without being resumed`)
    if (held(before.status) && !held(after.status) && after.status !== 'paused' && !resumed)
      say('RUN-16', `${id} let go with a pause asked and is ${after.status}`)
    if (before.status === 'paused' && after.status !== 'paused' && !resumed)
      say('RUN-16', `${id} left its pause for ${after.status} without being resumed`)
  }

  /** S12: nothing becomes due before its instant, save by what it waited for. */
  #woken(before: RunRow, change: Change, say: Say): void {
    if (before.ready_at === null || before.ready_at <= change.now) return
    if (before.wait_on === 'slot')
      return say('S12', `${before.id} was due at ${before.ready_at} and made due at ${change.now}`)
    for (const wait of this.#shadow.waitsOf(before.id).values())
      if (wait.state === 'satisfied') return
    say(
      'S12',
      `${before.id} was due at ${before.ready_at}, woken at ${change.now}, and nothing had come`,
    )
  }

  /** RUN-28: who waits stands at open waits only; anything that has come makes it due. */
  #standing(after: RunRow, say: Say): void {
    if (after.reason === 'retry' || after.reason === 'handed_back') return
    let open = 0
    for (const wait of this.#shadow.waitsOf(after.id).values()) {
      if (wait.state === 'open') open += 1
      if (wait.state === 'satisfied' || wait.state === 'lapsed')
        say('RUN-28', `${after.id} waits on ${after.wait_on} although ${wait.key} is ${wait.state}`)
    }
    if (open === 0 && after.ready_at === null)
      say('L11', `${after.id} waits on ${after.wait_on} with nothing to wait for`)
  }

  /** RUN-15, S6, S8: what an end brings with it. */
  #ended(run: RunRow, say: Say): void {
    const shadow = this.#shadow
    for (const wait of shadow.waitsOf(run.id).values())
      if (wait.state !== 'taken' && wait.state !== 'closed')
        say('RUN-15', `${run.id} is ${run.status} and ${wait.key} is ${wait.state}`)
    for (const approval of shadow.approvals.values())
      if (approval.run === run.id && approval.state === 'open')
        say('RUN-15', `${run.id} is ${run.status} and still asks ${approval.id}`)
    if (run.reason === 'continued') {
      const next = shadow.series.get(run.series)?.at(-1)
      if (next === undefined || next === run.id) say('RUN-34', `${run.id} continues in no run`)
    } else {
      for (const id of shadow.childrenOf.get(run.id) ?? []) {
        const child = shadow.runs.get(id)
        if (!child || ended(child.status) || child.on_parent_end !== 'cancel') continue
        if (child.status !== 'canceling' && !shadow.hasOrder(`cancel:${id}`))
          say(
            'RUN-15',
            `${run.id} is ${run.status} and nobody ends its child ${id} (${child.status})`,
          )
      }
      if (run.parent !== null && run.awaited === 1 && !shadow.hasOrder(`child:${run.id}`))
        say('S8', `${run.id} is ${run.status} and its parent ${run.parent} is not told`)
    }
    if (run.on_end !== null && run.status !== 'succeeded' && !shadow.runs.has(`${run.id}_end`))
      say('RUN-33', `${run.id} is ${run.status} and ${run.on_end} was not started`)
  }

  /** S2, S6, S11: entries come from the holder, in order, each key once. */
  #journal(change: Change, say: Say): void {
    const next = new Map<string, number>()
    for (const entry of change.entries) {
      const run = change.runs.find(({ after }) => after.id === entry.run)
      if (!run?.before) {
        say('S6', `${entry.key} was recorded in ${entry.run}, whose row did not change`)
        continue
      }
      if (!held(run.before.status) || run.before.attempt !== entry.attempt)
        say(
          'S2',
          `attempt ${entry.attempt} recorded ${entry.key} in ${entry.run} (${run.before.status}, attempt ${run.before.attempt})`,
        )
      const expected = next.get(entry.run) ?? run.before.entries + 1
      if (entry.n !== expected)
        say('RUN-26', `${entry.key} of ${entry.run} has number ${entry.n}; expected ${expected}`)
      next.set(entry.run, expected + 1)
    }
    for (const { run, key } of change.repeated) say('RUN-24', `${key} of ${run} was recorded twice`)
    for (const { before, after } of change.runs) {
      const expected = next.get(after.id) ?? (before ? before.entries + 1 : after.entries + 1)
      if (after.entries !== expected - 1)
        say('S6', `${after.id} counts ${after.entries} entries; expected ${expected - 1}`)
    }
  }

  /** S8, S12: how waits are satisfied, lapse, and are taken. */
  #waits(change: Change, say: Say): void {
    const shadow = this.#shadow
    for (const { before, after } of change.waits) {
      const where = `${after.key} of ${after.run}`
      const was = before?.state ?? 'open'
      if (was === 'closed' || was === 'taken') {
        if (was !== after.state) say('S12', `${where} was ${was} and is ${after.state}`)
        continue
      }
      if (after.state === 'open') {
        if (was !== 'open' && after.kind !== 'retry')
          say('S12', `${where} was ${was} and is open again`)
        if (!before && after.kind === 'child' && !shadow.runs.has(after.name ?? ''))
          say('S8', `${where} waits for ${after.name}, which is no run`)
      }
      if (
        after.state === 'lapsed' &&
        was === 'open' &&
        (after.dueAt === null || after.dueAt > change.now)
      )
        say('S12', `${where} lapsed at ${change.now}; it is due at ${after.dueAt}`)
      if (was === 'satisfied' && after.state === 'lapsed')
        say('S12', `${where} was satisfied and lapsed`)
      if (was === 'lapsed' && after.state === 'satisfied')
        say('S12', `${where} lapsed and was satisfied`)
      if (after.state === 'satisfied' && was !== 'satisfied') this.#came(after, change, say)
      if (after.state === 'taken' && was === 'open' && after.kind !== 'retry')
        say('RUN-25', `${where} was received although nothing had come`)
    }
    for (const entry of change.entries) {
      const wait = change.waits.find(
        ({ after }) => after.run === entry.run && after.key === entry.key,
      )
      if (!wait?.before || wait.after.kind === 'retry') continue
      if (
        wait.before.state === 'satisfied' &&
        entry.error === null &&
        !(entry.output ?? 'null').includes(wait.before.result ?? 'null') &&
        entry.kind === 'signal'
      )
        say(
          'S18',
          `${entry.key} of ${entry.run} was received as ${entry.output}; it is ${wait.before.result}`,
        )
    }
  }

  /** What satisfied a wait is there, and is what it says. */
  #came(
    wait: { run: string; key: string; kind: string; name: string | null; result: string | null },
    change: Change,
    say: Say,
  ): void {
    const shadow = this.#shadow
    const where = `${wait.key} of ${wait.run}`
    if (wait.kind === 'time' || wait.kind === 'retry')
      say('S12', `${where} is a timer and was satisfied`)
    if (
      wait.kind === 'signal' &&
      !change.taken.some(({ signal, by }) => signal.run === wait.run && by === wait.key)
    )
      say('RUN-30', `${where} was satisfied by no signal`)
    if (wait.kind === 'approval') {
      const approval = shadow.approvals.get(`${wait.run}:${wait.key}`)
      if (approval?.state !== 'approved' && approval?.state !== 'denied')
        say('S10', `${where} was satisfied and its approval is ${approval?.state ?? 'missing'}`)
    }
    if (wait.kind !== 'child') return
    const told = JSON.parse(wait.result ?? '{}') as { run?: string; status?: string }
    const child = shadow.runs.get(told.run ?? '')
    const first = shadow.runs.get(wait.name ?? '')
    if (!child || !first || child.series !== first.series)
      return say('S8', `${where} was told of ${told.run}, and waits for ${wait.name}`)
    if (!ended(child.status) || child.status !== told.status)
      say('S8', `${where} was told that ${child.id} is ${told.status}; it is ${child.status}`)
    if (child.reason === 'continued')
      say(
        'S8',
        `${where} was told of the end of ${child.id}, which goes on in ${shadow.series.get(child.series)?.at(-1)}`,
      )
  }

  /** RUN-30: each signal is received once, in order, by a wait of its name. */
  #signals(change: Change, say: Say): void {
    const shadow = this.#shadow
    const takers = new Map<string, string>()
    for (const { signal, by } of change.taken) {
      const other = takers.get(`${signal.run}/${signal.id}`)
      if (other !== undefined && other !== by)
        say('RUN-30', `${signal.id} of ${signal.run} satisfied ${other} and ${by}`)
      takers.set(`${signal.run}/${signal.id}`, by)
      if (signal.read)
        say('RUN-30', `${signal.id} of ${signal.run} was received and is taken again by ${by}`)
      const wait = shadow.waitsOf(signal.run).get(by)
      if (wait && wait.name !== signal.name)
        say('RUN-30', `${by} of ${signal.run} waits for ${wait.name} and took ${signal.name}`)
      let count = 0
      for (const other of shadow.signalsOf(signal.run).values()) {
        if (other.takenBy === by) count += 1
        if (
          other.name === signal.name &&
          other.takenBy === null &&
          !other.read &&
          other.seq < signal.seq
        )
          say('RUN-30', `${by} of ${signal.run} took ${signal.id} before ${other.id}`)
      }
      if (count > 1) say('RUN-30', `${by} of ${signal.run} took ${count} signals`)
    }
    for (const signal of change.sent) {
      const series = shadow.runs.get(signal.run)?.series ?? signal.run
      const known = `${series}/${signal.id}`
      if (this.#signalIds.has(known))
        say('RUN-30', `${signal.id} was sent to ${series} a second time`)
      this.#signalIds.add(known)
    }
    for (const { after } of change.waits) {
      if (after.kind !== 'signal' || after.state !== 'closed') continue
      const run = shadow.runs.get(after.run)
      if (!run || ended(run.status)) continue
      for (const signal of shadow.signalsOf(after.run).values())
        if (signal.takenBy === after.key && !signal.read)
          say('RUN-30', `${signal.id} of ${after.run} is lost with ${after.key}, which was closed`)
    }
  }

  /** S10: one decision, before its deadline. */
  #approvals(change: Change, say: Say): void {
    for (const { before, after } of change.approvals) {
      if (!before) continue
      if (before.state !== 'open')
        say('S10', `${after.id} was ${before.state} and is ${after.state}`)
      const decided = after.state === 'approved' || after.state === 'denied'
      if (decided && change.now >= after.deadline)
        say(
          'S10',
          `${after.id} was ${after.state} at ${change.now}, after its deadline ${after.deadline}`,
        )
      if (after.state === 'lapsed' && change.now < after.deadline)
        say('S10', `${after.id} lapsed at ${change.now}, before its deadline ${after.deadline}`)
      const wait = this.#shadow.waitsOf(after.run).get(after.key)
      if (wait?.state === 'open') say('S10', `${after.id} is ${after.state} and its wait is open`)
      if (wait?.state === 'lapsed' && decided)
        say('S10', `${after.id} is ${after.state} and its wait lapsed`)
    }
  }

  /** S14, RUN-06: a session that renewed in time is never reaped, and one that has ended stays so. */
  #session(before: SessionRow | undefined, after: SessionRow, change: Change, say: Say): void {
    if (before?.state === 'ended' && after.state !== 'ended')
      say('S1', `session ${after.id} had ended and is ${after.state}`)
    if (before && after.claim_no < before.claim_no)
      say(
        'RUN-05',
        `session ${after.id} went from claim ${before.claim_no} back to ${after.claim_no}`,
      )
    if (after.state !== 'ended' || before?.state === 'ended') return
    const lapsed = change.writes.some(
      (touch) =>
        touch.name === 'sessions.end_lapsed' && touch.rows.some((row) => row['id'] === after.id),
    )
    if (!lapsed) return
    const silent = this.#world.now - after.renewedAt
    const allowed = this.#numbers.leaseMs - this.#numbers.unnoticedSince(after.renewedAt)
    if (silent < allowed)
      say(
        'S14',
        `session ${after.id} was reaped ${silent} ms after its renewal; its lease is ${this.#numbers.leaseMs} ms`,
      )
  }

  /** An order is applied by the transaction that takes it away, and by no other. */
  #receipts(change: Change, say: Say): void {
    for (const { kind, run, recipient } of change.receipts) {
      const order = kind === 'parent_told' ? `child:${run}` : kind === 'cancel' ? recipient : null
      if (order !== null && !change.orders.has(order))
        say('S7', `${order} was applied by a transaction that did not take it`)
    }
  }

  /** S16: limits are locked before the active runs, and those in the order of their ids. */
  #locks(change: Change, say: Say): void {
    let last = ''
    for (const { name, rows } of change.locks) {
      const runs = rows.filter(
        (row) => typeof row['status'] === 'string' && !ended(String(row['status'])),
      )
      if (name === 'limits.lock' && last !== '') say('S16', `limits were locked after ${last}`)
      if (!name.startsWith('runs.lock')) continue
      for (const row of runs) last = String(row['id']) > last ? String(row['id']) : last
    }
  }
}

type Say = (rule: string, message: string) => void
