// What drives one attempt of one run, as the verbs and the executor see it. `run-driver.ts` does the work.
import type { Ports } from '../../kernel/ports.ts'
import type { FirstReason } from '../../model/attempt.ts'
import type { Job } from '../../model/job.ts'
import type { RunStatus } from '../../model/run.ts'
import type {
  AttemptWrite,
  ChildStart,
  ClaimedRun,
  Directive,
  Entry,
  EntryKind,
  LiveWait,
  WaitRecord,
  WriteAnswer,
} from '../../model/work.ts'
import type { Abort } from './abort.ts'
import type { Turns } from './turns.ts'

/** How an attempt left its executor. */
export type Left =
  | { readonly kind: 'ended'; readonly status: RunStatus }
  /** The fence was lost: another holds the run. */
  | { readonly kind: 'stale' }
  /** The process that was launched for it has adopted it: it is that process's to end. */
  | { readonly kind: 'handed_on' }
  /** Let go without a write: the session is over, or the write could not be made. */
  | {
      readonly kind: 'dropped'
      readonly reason: string
      /** What the store could not keep, where that is why. */
      readonly unsaved?: 'start' | 'result'
    }

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

export type Returned =
  | { readonly kind: 'value'; readonly output: string | null }
  | { readonly kind: 'continue'; readonly input: string | null; readonly runId: string }

export interface DriverOptions {
  readonly claimed: ClaimedRun
  /** What its executor has of it: the driver asks it to stop, and counts there what has begun. */
  readonly job: Job
  readonly ports: Ports
  readonly turns: Turns
  /** Sends a write until it is answered; throws when the session is over. */
  readonly write: (write: AttemptWrite) => Promise<WriteAnswer>
  readonly page: (after: number) => Promise<readonly Entry[]>
  /** The store's clock less this process's monotonic clock. */
  readonly storeOffset: number
  /** The workflows whose runs could have the slot that this one has; none while there is room for them beside it. */
  readonly rivals: () => readonly string[]
  /** Steps that one claim drives before a waiting run gets the slot. */
  readonly maxChainDepth: number
  /** Milliseconds before the workflow's own next try, undefined when it has none left for this error. */
  readonly retryInMs: (error: unknown) => number | undefined
  /** Where a process of its own drives the attempt: what this one is asked goes there. */
  readonly relay?: Pick<Driver, 'drain' | 'told'>
}

export interface Driver {
  readonly claimed: ClaimedRun
  readonly signal: AbortSignal
  /** Behind `signal`, for those that may not need one. */
  readonly aborting: Abort
  readonly job: Job
  /** Resolves when the attempt has left its executor; bodies may still run. */
  readonly left: Promise<Left>
  /** Resolves when it has left and every body has settled: only then is its slot free. */
  readonly settled: Promise<Left>
  /** Runs the function; called once. */
  start(run: () => Promise<Returned>): void
  readonly over: boolean
  /** Its end is on its way to the store, or there. */
  readonly ending: boolean

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
  /** A scope has lost its race: its branches are dropped, and the keys of its waits are returned, to be closed by its entry. */
  closeScope(prefix: string, race: string): string[]
  /** As `closeScope`, where no entry says so: the waits are closed by the next write. */
  endScope(prefix: string): void
  isClosed(key: string): boolean
  /** A mark received at once, without waiting for rest. */
  mark(key: string, kind: EntryKind): boolean
  readonly replaying: boolean
  now(): number
  setState(text: string | null): void
  progress(text: string): void
  append(stream: string, data: string | null): void

  // for the executor
  /** Its function is called when what it needs has been made: that counts as something begun, until `bodySettles`. */
  preparationBegins(): void
  /** Records how far the attempt has come before its function is at work. */
  says(phase: 'preparing' | 'launched'): void
  /** The attempt is not to begin here: it is handed back for this reason when nothing is at work. */
  giveBack(reason: string): void
  /** Handed back at once: none of its code is at work here, whatever is counted as begun. */
  handBack(reason: string): void
  stop(reason: FirstReason, note: string): void
  drain(): void
  told(directive: Directive, note: string | null): void
  drop(reason: string): void
  /** A body ignored its limit: the attempt ends so that the next try, if there is one, has a higher fence. */
  revoke(record: WaitRecord | null, note: string): void
  fail(reason: string, error: unknown, retryInMs?: number): void

  // for an attempt that a process of its own drives
  /** It has left by what that process wrote. */
  leaveAs(how: Left): void
  /** That process is gone without an end; `note` is the evidence. */
  lose(note: string): void
}
