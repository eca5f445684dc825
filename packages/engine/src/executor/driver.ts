// Drives one attempt of one run: the function over its journal. It knows when the function is at rest, gives it recorded
// outcomes in their order and one at a time, records new ones, and suspends when every branch stands at a durable wait.
//
// What must hold here:
// 1. No body begins, and no wait is recorded, while an outcome that the function has received is not durable.
// 2. Entries are numbered in the order in which the function receives them; replay gives them in that order.
// 3. One write of the run is in flight at a time, and whatever is ready joins the next.
// 4. Once the fence is lost, or the attempt has ended, nothing more is written.
// 5. The slot is free only when every body that began has settled.
import { Defect } from '../kernel/errors.ts'
import { messageOf } from '../kernel/json.ts'
import type { Ports } from '../kernel/ports.ts'
import type { FirstReason } from '../model/attempt.ts'
import type { RunStatus } from '../model/run.ts'
import type { AttemptWrite, ChildStart, ClaimedRun, Directive, EndReport, Entry, EntryKind, LiveWait, WaitRecord, WriteAnswer } from '../model/work.ts'
import { makeAbort } from './abort.ts'
import { failureOf } from './failure.ts'
import type { Turns } from './turns.ts'

/** How an attempt left its executor. */
export type Left =
  | { readonly kind: 'ended'; readonly status: RunStatus }
  /** The fence was lost: another holds the run. */
  | { readonly kind: 'stale' }
  /** Let go without a write: the session is over, or the write could not be made. */
  | { readonly kind: 'dropped'; readonly reason: string }

/** An outcome as the function receives it: JSON texts. */
export interface Received {
  readonly output: string | null
  readonly error: string | null
}

/** Where a branch of the function stands: at a name whose outcome it has asked for. */
export interface Branch {
  readonly key: string
  readonly kind: EntryKind
  /** `asked` until the journal is replayed, `body` while this process works on it, `wait` at a durable wait. */
  state: 'asked' | 'body' | 'wait'
  /**
   * Called when the journal holds no outcome for it, and again whenever its recorded wait has changed: begins the body,
   * records the wait, or reports the outcome with `ready`; sets `state`.
   */
  readonly look: (live: LiveWait | undefined) => void
  readonly receive: (received: Received) => void
}

/** An outcome that came about in this process. */
export interface Ready extends Received {
  readonly key: string
  readonly kind: EntryKind
  /** A child that starts with the entry. */
  readonly spawn?: ChildStart & { readonly as: string }
  /** Waits of a race's losers. */
  readonly closes?: readonly string[]
}

export type Returned = { readonly kind: 'value'; readonly output: string | null } | { readonly kind: 'continue'; readonly input: string | null; readonly runId: string }

export interface DriverOptions {
  readonly claimed: ClaimedRun
  readonly ports: Ports
  readonly turns: Turns
  /** Sends a write until it is answered; throws when the session is over. */
  readonly write: (write: AttemptWrite) => Promise<WriteAnswer>
  readonly page: (after: number) => Promise<readonly Entry[]>
  /** The store's clock less this process's monotonic clock. */
  readonly storeOffset: number
  /** Whether another run waits for the slot that this one has. */
  readonly othersWait: () => boolean
  /** Steps that one claim drives before a waiting run gets the slot. */
  readonly maxChainDepth: number
  /** Milliseconds before the workflow's own next try, undefined when it has none left for this error. */
  readonly retryInMs: (error: unknown) => number | undefined
}

export interface Driver {
  readonly claimed: ClaimedRun
  readonly signal: AbortSignal
  /** As a listener of `signal`, without the need of one. */
  onAbort(hear: (reason: unknown) => void): () => void
  readonly firstReason: FirstReason | null
  /** Whether the first reason is stored with the attempt's end. */
  readonly reasonSaved: boolean
  /** Bodies that have begun and not settled. */
  readonly bodies: number
  /** Resolves when the attempt has left its executor; bodies may still run. */
  readonly left: Promise<Left>
  /** Resolves when it has left and every body has settled: only then is its slot free. */
  readonly settled: Promise<Left>
  /** Runs the function; called once. */
  start(run: () => Promise<Returned>): void
  readonly over: boolean

  // for the verbs
  ask(branch: Branch): void
  ready(ready: Ready): void
  record(wait: WaitRecord): void
  /** Resolves when this failed try is durable; false when the attempt ended instead. */
  failedTry(record: WaitRecord): Promise<boolean>
  /** Calls `begin` when all that the function has received is durable and bodies may begin; perhaps never. */
  whenDurable(key: string, begin: () => void): void
  bodyBegins(): void
  bodySettles(): void
  /** A short wait in this process begins or ends: the attempt does not suspend meanwhile. */
  inPlace(change: 1 | -1): void
  /** A scope has lost its race: its branches are dropped, and the keys of its waits are returned, to be closed. */
  closeScope(prefix: string): string[]
  isClosed(key: string): boolean
  /** A mark received at once, without waiting for rest. */
  mark(key: string, kind: EntryKind): boolean
  readonly replaying: boolean
  now(): number
  setState(text: string | null): void
  progress(text: string): void
  append(stream: string, data: string | null): void

  // for the executor
  stop(reason: FirstReason, note: string): void
  drain(): void
  told(directive: Directive, note: string | null): void
  drop(reason: string): void
  /** A body ignored its limit: the attempt ends so that the next try has a higher fence. */
  revoke(record: WaitRecord, note: string): void
  fail(reason: string, error: unknown, retryInMs?: number): void
}

const STREAM_MAX = 10_000
const STREAM_STRIDE = 1_000_000
const DEPARTS_MS = 1_000
const LOOK_MS = 1_000
const SHOW_MS = 200
const NOTE_MAX = 2_000

export const makeDriver = (options: DriverOptions): Driver => {
  const { claimed, ports, turns } = options
  const aborting = makeAbort()
  const branches = new Map<string, Branch>()
  const live = new Map<string, LiveWait>(claimed.waits.map((wait) => [wait.key, wait]))
  const unreached = new Set<string>(live.keys())
  const retried = new Set<string>(claimed.waits.filter((wait) => wait.kind === 'retry').map((wait) => wait.key))
  const closed: string[] = []

  let journal: readonly Entry[] = claimed.journal
  let at = 0
  const consumed = new Set<string>()
  let lastAt = claimed.createdAt

  // received or recorded, and not yet sent
  let count = claimed.entries
  let unsent: Entry[] = []
  let waits: WaitRecord[] = []
  let spawns: (ChildStart & { as: string })[] = []
  let closes: string[] = []
  let state: { text: string | null } | null = null
  let shown: string | null = null
  let items: { stream: string; seq: number; data: string | null }[] = []
  let itemCount = 0
  let looks = false
  let end: EndReport | null = null

  const queue: Ready[] = []
  let begins: { key: string; begin: () => void }[] = []
  let tries: ((durable: boolean) => void)[] = []
  let bodies = 0
  let steps = 0
  let places = 0
  let writing = false
  let firstReason: FirstReason | null = null
  let firstNote = ''
  let reasonSaved = false
  let draining = false
  let pausing = false
  let returned = false
  let over: Left | null = null
  let quiet = 0
  let departs: (() => void) | null = null
  let looking: (() => void) | null = null
  let showing = false

  let resolveLeft: (left: Left) => void = () => undefined
  let resolveSettled: (left: Left) => void = () => undefined
  const left = new Promise<Left>((resolve) => (resolveLeft = resolve))
  const settled = new Promise<Left>((resolve) => (resolveSettled = resolve))

  const leave = (how: Left): void => {
    if (over) return
    over = how
    departs?.()
    looking?.()
    begins = []
    for (const resolve of tries) resolve(false)
    tries = []
    if (bodies > 0 && !aborting.aborted)
      aborting.abort(new Error(how.kind === 'stale' ? 'another attempt holds the run' : 'the attempt has ended'))
    resolveLeft(how)
    if (bodies === 0) resolveSettled(how)
  }

  const replaying = (): boolean => at < journal.length

  /** Something moved: the function is at rest again two turns from now at the earliest. */
  const stir = (): void => {
    quiet = 0
    departs?.()
    if (!over) turns.add(ticking)
  }

  const ticking = {
    tick(): boolean {
      if (over) return false
      quiet += 1
      if (quiet < 2) return true
      try {
        atRest()
      } catch (error) {
        // what is stored for this run cannot be read: it fails, and the other runs of this process go on
        if (error instanceof Defect) throw error
        driver.fail('error', error)
      }
      return quiet < 2 && over === null
    },
  }

  const give = (key: string, received: Received): void => {
    const branch = branches.get(key)
    branches.delete(key)
    live.delete(key)
    unreached.delete(key)
    stir()
    branch?.receive(received)
  }

  const atRest = (): void => {
    if (over || end) return
    if (replaying()) {
      if (mustLetGo()) letGo()
      else replayNext()
      return
    }
    const next = queue.shift()
    if (next) {
      receive(next)
      return
    }
    if (returned) return
    if (mustLetGo() && !writing && bodies === 0 && [...branches.values()].some((branch) => branch.state !== 'wait' && branch.kind === 'step')) {
      letGo()
      return
    }
    const asked = [...branches.values()].filter((branch) => branch.state === 'asked')
    for (const branch of asked) {
      unreached.delete(branch.key)
      branch.look(live.get(branch.key))
    }
    if (asked.length > 0) stir()
    goOn()
  }

  const receive = (next: Ready): void => {
    if (isClosed(next.key)) {
      stir()
      return
    }
    count += 1
    unsent.push({ n: count, key: next.key, kind: next.kind, at: stamp(), output: next.output, error: next.error })
    if (next.spawn) spawns.push(next.spawn)
    if (next.closes) closes.push(...next.closes)
    give(next.key, next)
  }

  const stamp = (): number => {
    lastAt = Math.max(lastAt, Math.floor(ports.time.mono() + options.storeOffset))
    return lastAt
  }

  const pending = (): boolean => unsent.length > 0 || waits.length > 0 || closes.length > 0 || tries.length > 0 || state !== null || looks

  /** At rest with nothing to give: store what is unsent, let bodies begin, suspend, or let go. */
  const goOn = (): void => {
    if (over || end || writing || replaying() || queue.length > 0) return
    const standing = [...branches.values()]
    const idle = bodies === 0 && begins.length === 0 && places === 0
    if (idle && standing.length > 0 && standing.every((branch) => branch.state === 'wait')) {
      if (firstReason !== null) return letGo()
      end = { kind: 'suspend', keys: standing.map((branch) => branch.key) }
      void flush()
      return
    }
    if (mustLetGo() && bodies === 0) return letGo()
    if (pending()) {
      void flush()
      return
    }
    if (begins.length > 0 && !mustLetGo()) {
      const now = begins
      begins = []
      for (const { key, begin } of now) if (!isClosed(key)) begin()
      return
    }
    armLook()
  }

  /** Whether no further body may begin: the run is to be let go of at the next end of a step. */
  const mustLetGo = (): boolean =>
    firstReason !== null || draining || pausing || (begins.length > 0 && steps > 0 && steps >= options.maxChainDepth && options.othersWait())

  const letGo = (): void => {
    if (end) return
    if (firstReason === 'time_limit' || firstReason === 'attempt_deadline') {
      const error = Object.assign(new Error(firstNote), { code: firstReason })
      driver.fail(firstReason, error, firstReason === 'attempt_deadline' ? options.retryInMs(error) : undefined)
      return
    }
    if (firstReason === 'stale') end = { kind: 'stale', note: firstNote }
    else if (firstReason !== null) end = { kind: 'hand_back', reason: firstReason }
    else if (draining) end = { kind: 'hand_back', reason: 'shutdown' }
    else if (pausing) end = { kind: 'hand_back', reason: 'pause' }
    else end = { kind: 'hand_back', reason: 'chain', toEnd: true }
    void flush()
  }

  const park = (note: string): void => {
    if (end || over) return
    end = { kind: 'park', reason: 'nondeterminism', note }
    if (bodies > 0) aborting.abort(new Error(note))
    void flush()
  }

  const replayNext = (): void => {
    const entry = journal[at]
    if (!entry) return
    const branch = branches.get(entry.key)
    if (consumed.has(entry.key) || isClosed(entry.key)) {
      at += 1
      stir()
    } else if (branch && branch.kind !== entry.kind)
      park(`entry ${entry.n} of the journal is ${entry.key} as ${entry.kind}; the function asks for it as ${branch.kind}`)
    else if (branch) {
      at += 1
      lastAt = entry.at
      give(entry.key, entry)
    } else if (!departs) {
      const cancel = ports.timers.after(DEPARTS_MS, () => {
        departs = null
        const asked = [...branches.keys()]
        park(`entry ${entry.n} of the journal is ${entry.key} (${entry.kind}); the function ${asked.length === 0 ? 'asks for nothing' : `asks for ${asked.join(', ')}`}`)
      })
      departs = () => {
        cancel()
        departs = null
      }
    }
  }

  /** While other branches work, a wait of this run may be satisfied or due: look now and then, in case nobody tells. */
  const armLook = (): void => {
    if (looking || ![...branches.values()].some((branch) => branch.state === 'wait')) return
    const cancel = ports.timers.after(LOOK_MS, () => {
      looking = null
      looks = true
      goOn()
    })
    looking = () => {
      cancel()
      looking = null
    }
  }

  const take = (): AttemptWrite => {
    const write: AttemptWrite = {
      run: claimed.run,
      attempt: claimed.attempt,
      entries: unsent,
      ...(waits.length > 0 ? { waits } : {}),
      ...(spawns.length > 0 ? { spawns } : {}),
      ...(closes.length > 0 ? { closes } : {}),
      ...(state ? { state: state.text } : {}),
      ...(shown !== null ? { progress: shown } : {}),
      ...(items.length > 0 ? { stream: items } : {}),
      ...(looks || unsent.some((entry) => retried.has(entry.key)) ? { look: true } : {}),
      ...(firstReason !== null ? { firstReason } : {}),
      ...(end ? { end } : {}),
    }
    unsent = []
    waits = []
    spawns = []
    closes = []
    state = null
    shown = null
    items = []
    looks = false
    return write
  }

  const flush = async (): Promise<void> => {
    if (writing || over) return
    writing = true
    do {
      const trying = tries
      tries = []
      const write = take()
      let answer: WriteAnswer
      try {
        answer = await options.write(write)
      } catch (error) {
        for (const resolve of trying) resolve(false)
        leave({ kind: 'dropped', reason: messageOf(error) })
        return
      }
      if (over) {
        for (const resolve of trying) resolve(false)
        return
      }
      if (!answer.ok) {
        for (const resolve of trying) resolve(false)
        refused(answer)
        continue
      }
      if (answer.ended !== null) {
        reasonSaved = firstReason !== null
        for (const resolve of trying) resolve(false)
        leave({ kind: 'ended', status: answer.ended })
        return
      }
      // the suspend found one of its waits satisfied: the attempt goes on
      if (write.end?.kind === 'suspend') end = null
      for (const record of write.waits ?? []) {
        if (record.kind === 'retry') retried.add(record.key)
      }
      for (const wait of answer.satisfied) noteWait(wait)
      for (const resolve of trying) resolve(true)
      if (answer.directive !== null) driver.told(answer.directive, answer.note)
    } while (over === null && end !== null)
    writing = false
    if (over) return
    if (quiet >= 2) goOn()
    else stir()
  }

  const refused = (answer: Extract<WriteAnswer, { ok: false }>): void => {
    if (answer.code === 'stale_attempt' || answer.code === 'not_found') return leave({ kind: 'stale' })
    if (end?.kind === 'fail' && end.reason === 'result_unsaveable') return leave({ kind: 'dropped', reason: answer.message })
    // the store refuses the content: the run fails by name, and nothing else is touched
    unsent = []
    waits = []
    spawns = []
    closes = []
    const reason = answer.code === 'payload_too_large' ? 'result_unsaveable' : answer.code
    end = { kind: 'fail', reason, note: answer.message, error: JSON.stringify({ name: 'LeaseholdError', message: answer.message, code: answer.code }) }
  }

  const noteWait = (wait: LiveWait): void => {
    live.set(wait.key, wait)
    const branch = branches.get(wait.key)
    if (branch?.state === 'wait' && !queue.some((each) => each.key === wait.key)) branch.look(wait)
  }

  const isClosed = (key: string): boolean => closed.some((prefix) => key.startsWith(prefix))

  const show = (): void => {
    if (showing || over) return
    showing = true
    ports.timers.after(SHOW_MS, () => {
      showing = false
      if (!over && !end && !writing && (shown !== null || items.length > 0 || state !== null)) void flush()
    })
  }

  const driver: Driver = {
    claimed,
    get signal() {
      return aborting.signal
    },
    onAbort: aborting.onAbort,
    get firstReason() {
      return firstReason
    },
    get reasonSaved() {
      return reasonSaved
    },
    get bodies() {
      return bodies
    },
    get over() {
      return over !== null
    },
    get replaying() {
      return replaying() || unreached.size > 0
    },
    left,
    settled,

    start(run) {
      const drive = async (): Promise<void> => {
        let known = journal
        while (known.length < claimed.entries && !over) {
          const more = await options.page(known.length)
          if (more.length === 0) break
          known = [...known, ...more]
        }
        journal = known
        if (over) return
        stir()
        try {
          finishWith(await run())
        } catch (error) {
          returned = true
          // an error after a stop was asked is the stop's doing: it settles by its first reason (RUN-17)
          if (firstReason !== null && !over && !end) letGo()
          else if (!over && !end) driver.fail('error', error, options.retryInMs(error))
        }
      }
      const finishWith = (result: Returned): void => {
        returned = true
        if (over || end) return
        if (firstReason === 'time_limit' || firstReason === 'attempt_deadline' || firstReason === 'stale') return letGo()
        if (replaying()) return park(`the function returned while the journal has ${journal[at]?.key} as entry ${journal[at]?.n}`)
        const dangling = [...branches.values()].find((branch) => !isClosed(branch.key))
        if (dangling) {
          const message = `the function returned while ${dangling.key} was not awaited; await every step, or use ctx.race`
          return driver.fail('unawaited_step', Object.assign(new Error(message), { code: 'unawaited_step' }))
        }
        end = result.kind === 'value' ? { kind: 'complete', output: result.output } : { kind: 'continue', input: result.input, runId: result.runId }
        void flush()
      }
      drive().catch((error: unknown) => leave({ kind: 'dropped', reason: messageOf(error) }))
    },

    ask(branch) {
      branches.set(branch.key, branch)
      stir()
    },
    ready(ready) {
      if (over) return
      queue.push(ready)
      stir()
    },
    record(wait) {
      waits.push(wait)
    },
    failedTry(record) {
      if (over || end) return Promise.resolve(false)
      waits.push(record)
      return new Promise((resolve) => {
        tries.push(resolve)
        void flush()
      })
    },
    whenDurable(key, begin) {
      if (over || end) return
      begins.push({ key, begin })
    },
    bodyBegins() {
      bodies += 1
      steps += 1
    },
    bodySettles() {
      bodies -= 1
      if (!over) return stir()
      if (bodies === 0) resolveSettled(over)
    },
    inPlace(change) {
      places += change
      stir()
    },
    closeScope(prefix) {
      closed.push(prefix)
      const lost = new Set<string>()
      for (const [key, branch] of branches) {
        if (!key.startsWith(prefix)) continue
        branches.delete(key)
        if (branch.state === 'wait' && !waits.some((record) => record.key === key)) lost.add(key)
      }
      for (const key of live.keys()) if (key.startsWith(prefix)) lost.add(key)
      for (const key of lost) {
        live.delete(key)
        unreached.delete(key)
      }
      waits = waits.filter((record) => !record.key.startsWith(prefix))
      return [...lost]
    },
    isClosed,
    mark(key, kind) {
      if (journal.some((entry) => entry.key === key)) {
        consumed.add(key)
        if (journal[at]?.key === key) at += 1
        return true
      }
      if (driver.replaying) return false
      if (unsent.some((entry) => entry.key === key)) return true
      count += 1
      unsent.push({ n: count, key, kind, at: stamp(), output: null, error: null })
      return true
    },
    now: () => lastAt,
    setState(text) {
      if (driver.replaying) return
      state = { text }
      show()
    },
    progress(text) {
      shown = text
      show()
    },
    append(stream, data) {
      if (itemCount >= STREAM_MAX || over) return
      itemCount += 1
      items.push({ stream, seq: claimed.attempt * STREAM_STRIDE + itemCount, data })
      show()
    },

    stop(reason, note) {
      if (firstReason !== null || over) return
      firstReason = reason
      firstNote = note
      aborting.abort(Object.assign(new Error(note), { name: 'AbortError', reason }))
      stir()
    },
    drain() {
      draining = true
      stir()
    },
    told(directive, note) {
      if (over) return
      if (directive === 'cancel') driver.stop('canceled', note ?? 'canceled')
      else if (directive === 'pause') {
        pausing = true
        stir()
      } else {
        looks = true
        stir()
      }
    },
    drop(reason) {
      if (!aborting.aborted) aborting.abort(Object.assign(new Error(reason), { name: 'AbortError' }))
      leave({ kind: 'dropped', reason })
    },
    revoke(record, note) {
      if (over || end) return
      waits.push(record)
      end = { kind: 'revoke', reason: 'step_limit', note }
      void flush()
    },
    fail(reason, error, retryInMs) {
      if (over || (end !== null && end.kind !== 'suspend')) return
      const failure = JSON.stringify(failureOf(error))
      end = { kind: 'fail', reason, note: messageOf(error).slice(0, NOTE_MAX), error: failure, ...(retryInMs === undefined ? {} : { retryInMs }) }
      if (retryInMs !== undefined) {
        // errors that are not durable yet are not recorded: their steps are tried anew by the next attempt
        const base = count - unsent.length
        closes.push(...unsent.filter((entry) => entry.error !== null).map((entry) => entry.key))
        unsent = unsent.filter((entry) => entry.error === null).map((entry, i) => ({ ...entry, n: base + i + 1 }))
        count = base + unsent.length
      }
      void flush()
    },
  }
  return driver
}
