// What passes between an executor and the engine: a claim's answer, what an attempt writes, and what it is told. Every
// way in, direct or over HTTP, carries exactly these.
import type { Refusal } from '../kernel/outcome.ts'
import type { FirstReason } from './attempt.ts'
import type { Definition } from './definition.ts'
import type { LogAnswer, LogPart } from './log.ts'
import type { RunStatus } from './run.ts'
import type { StartCommand } from './start.ts'
import type { WaitKind, WaitState } from './wait.ts'

export const PROTOCOL_VERSION = 1

/** An entry of the journal: an outcome that the function received. */
export interface Entry {
  /** 1, 2, 3 … in the order in which the function received them. */
  readonly n: number
  /** The author's name within its scope; unique in the run. */
  readonly key: string
  readonly kind: EntryKind
  /** What `ctx.now()` answers from here on: store time, milliseconds. */
  readonly at: number
  /** JSON text. */
  readonly output: string | null
  /** JSON text of the error, when the outcome is one. */
  readonly error: string | null
}
export const entryKinds = [
  'step',
  'time',
  'signal',
  'approval',
  'child',
  'spawn',
  'race',
  'patch',
  'local',
] as const
export type EntryKind = (typeof entryKinds)[number]

/** A wait that the function has not received yet. */
export interface LiveWait {
  readonly key: string
  readonly kind: WaitKind
  readonly name: string | null
  readonly dueAt: number | null
  readonly state: WaitState
  readonly result: string | null
  readonly tries: number
  readonly error: string | null
}

/** A wait as it is reached: what it is for, and until when. */
export interface WaitRecord {
  readonly key: string
  readonly kind: WaitKind
  readonly name?: string | null
  /** Milliseconds from the store's clock at recording; or `dueAt`, an instant. */
  readonly dueInMs?: number
  readonly dueAt?: number
  /** For a retry: failed tries so far, and the last error as JSON text. */
  readonly tries?: number
  readonly error?: string | null
  readonly approval?: {
    readonly prompt: string
    readonly data: string | null
    readonly deciders: readonly string[]
  }
  readonly child?: ChildStart
}

export interface ChildStart extends StartCommand {
  readonly awaited: boolean
  readonly onParentEnd: 'cancel' | 'detach'
}

export type EndReport =
  | { readonly kind: 'complete'; readonly output: string | null }
  | { readonly kind: 'continue'; readonly input: string | null; readonly runId: string }
  | {
      readonly kind: 'fail'
      readonly reason: string
      readonly note: string
      readonly error: string
      readonly retryInMs?: number
    }
  | { readonly kind: 'suspend'; readonly keys: readonly string[] }
  /** `ifWaiting`: only where a run of these versions of workflows (`definitionKey`) waits for the slot; else the attempt goes on. */
  | {
      readonly kind: 'hand_back'
      readonly reason: string
      readonly toEnd?: boolean
      readonly ifWaiting?: readonly string[]
    }
  | { readonly kind: 'park'; readonly reason: string; readonly note: string }
  | { readonly kind: 'stale'; readonly note: string }
  /** A step's body has not settled after its limit: its failed try is recorded and the next one gets a higher fence. */
  | { readonly kind: 'revoke'; readonly reason: string; readonly note: string }
  /** The process that drove the attempt is proven gone and has left no end: its launcher reports what it saw. */
  | { readonly kind: 'lose'; readonly note: string }

/** One write of an attempt: entries and waits, and perhaps its end; all of it or nothing is stored. */
export interface AttemptWrite {
  readonly run: string
  readonly attempt: number
  readonly entries: readonly Entry[]
  readonly waits?: readonly WaitRecord[]
  /** Waits that lost a race. */
  readonly closes?: readonly string[]
  /** Children started and not awaited; each has an entry of kind `spawn`. */
  readonly spawns?: readonly (ChildStart & { readonly as: string })[]
  readonly state?: string | null
  readonly progress?: string
  readonly stream?: readonly {
    readonly stream: string
    readonly seq: number
    readonly data: string | null
  }[]
  readonly firstReason?: FirstReason | null
  /** Where the attempt has come to before its function runs; recorded once, and not of a run that is being canceled. */
  readonly phase?: 'preparing' | 'launched'
  /** Settle what is due and answer it, though nothing is recorded. */
  readonly look?: boolean
  readonly end?: EndReport
}

const directives = ['cancel', 'pause', 'waits'] as const
/** `waits`: a wait of the run has been satisfied while it is held. */
export type Directive = (typeof directives)[number]

export interface WriteOk {
  readonly ok: true
  readonly rev: number
  readonly directive: Directive | null
  /** The sentence behind a cancel. */
  readonly note: string | null
  /** The run's status where this write ended the attempt, else null: the attempt goes on. */
  readonly ended: RunStatus | null
  /** Waits that are satisfied or due and that the function has not received. */
  readonly satisfied: readonly LiveWait[]
}
export type WriteAnswer = WriteOk | Refusal

/** A run as a claim gives it to its new holder. */
export interface ClaimedRun {
  readonly run: string
  readonly workflow: string
  readonly version: string
  readonly owner: string
  readonly attempt: number
  readonly leasedAt: number
  /** The run by whose id its chance is drawn: itself, or the one whose entries it began with. */
  readonly seed: string
  /** What `ctx.now()` gives before the first entry: when that run was created. */
  readonly firstAt: number
  /** Run's total limit and this attempt's limit as instants on the store's clock. */
  readonly deadline: number | null
  readonly attemptDeadline: number | null
  readonly failures: number
  /** JSON text. */
  readonly input: string | null
  /** Entries in all; `journal` may hold fewer, the rest is paged. */
  readonly entries: number
  /** The last number in its streams, from an attempt on in which they are not numbered by the attempt. */
  readonly items?: number
  readonly journal: readonly Entry[]
  readonly waits: readonly LiveWait[]
}

export interface ClaimRequest {
  readonly session: string
  /** 1, 2, 3 …; a second copy is answered with the first's runs. */
  readonly claim: number
  readonly most: number
  /** Runs that have a job or a marker here, and are not given again. */
  readonly except: readonly string[]
  /** Only runs of these versions of workflows (`definitionKey`): those whose slot class has room here. */
  readonly only?: readonly string[]
  /** How long the answer may wait for work, in milliseconds; 0 answers at once. */
  readonly waitMs: number
}
export interface ClaimOk {
  readonly ok: true
  readonly claim: number
  readonly runs: readonly ClaimedRun[]
  /** The store's clock as it answered. */
  readonly now: number
  readonly leaseUntil: number | null
}
export type ClaimAnswer = ClaimOk | Refusal

export interface RegisterRequest {
  readonly protocol: number
  readonly session: string
  readonly build: string
  readonly host: string
  readonly pid: number
  readonly queues: readonly string[]
  readonly labels: readonly string[]
  readonly capacity: number
  readonly definitions: readonly Definition[]
}
export interface RegisterOk {
  readonly ok: true
  readonly session: string
  readonly now: number
  readonly generation: number
  readonly leaseMs: number
  readonly renewMs: number
  /** Embedded sessions live inside the owner of the file and are not renewed. */
  readonly embedded: boolean
  readonly limits: {
    readonly payloadMaxBytes: number
    readonly entriesMax: number
    readonly journalMaxBytes: number
    readonly limitGraceMs: number
    readonly childrenMax: number
  }
}
export type RegisterAnswer = RegisterOk | Refusal

export interface LetGo {
  readonly run: string
  readonly attempt: number
  readonly reason: string
}
export interface RenewRequest {
  readonly session: string
  readonly draining: boolean
  /** What the executor shows of itself, as JSON text. */
  readonly status: string | null
  /** Hand-backs that were not acknowledged; acknowledged is what an answer does not name as pending. */
  readonly letGo: readonly LetGo[]
  /** Once a lease: all that is held from claims up to `claim`. */
  readonly held?:
    | { readonly claim: number; readonly digest: string }
    | {
        readonly claim: number
        readonly runs: readonly { readonly run: string; readonly attempt: number }[]
      }
}
/** All that a session is told. `clear`: somebody has seen to what the run left on the executor, whatever its attempt. */
export const toldDirectives = [...directives, 'clear'] as const
export interface Told {
  readonly run: string
  readonly attempt: number
  readonly directive: (typeof toldDirectives)[number]
  readonly note: string | null
}
export interface RenewOk {
  readonly ok: true
  readonly now: number
  readonly leaseUntil: number | null
  readonly told: readonly Told[]
  /** What it listed as let go and still holds: it is about to be handed back; list it again until it is. */
  readonly pending: readonly { readonly run: string; readonly attempt: number }[]
  /** An earlier digest differed: send the list with the next renewal. */
  readonly wantsList: boolean
  /** Of several databases, those by number that did not answer: leases of runs there were not renewed. */
  readonly unreached?: readonly number[]
}
export type RenewAnswer = RenewOk | Refusal

/** A token for an attempt that `session` holds, for a session that is to be called `runner`. */
export interface GrantRequest {
  readonly session: string
  readonly run: string
  readonly attempt: number
  readonly runner: string
  /** How long its bearer may take to adopt it. */
  readonly startByMs: number
}
export type GrantAnswer =
  { readonly ok: true; readonly token: string; readonly startBy: number } | Refusal

/** The engine as a launcher of processes for one attempt each sees it, beside the port. */
export type Grant = (request: GrantRequest) => Promise<GrantAnswer>

export interface CloseRequest {
  readonly session: string
  readonly reason: string
  /** Runs whose bodies have not settled in a process that lives on: they stay held, for one last lease. */
  readonly except?: readonly string[]
  /** The last lines that its attempts have written: closing waits for nothing else. */
  readonly logs?: readonly LogPart[]
}
export type CloseAnswer = { readonly ok: true; readonly handedBack: number } | Refusal

/** The engine as an executor sees it; all its ways in are this port. */
export interface ExecutorPort {
  register(request: RegisterRequest): Promise<RegisterAnswer>
  claim(request: ClaimRequest, signal?: AbortSignal): Promise<ClaimAnswer>
  /** Entries of a run after number `n`, in order, up to a page; an empty page ends the journal. */
  journal(session: string, run: string, after: number): Promise<readonly Entry[]>
  write(session: string, write: AttemptWrite): Promise<WriteAnswer>
  renew(request: RenewRequest): Promise<RenewAnswer>
  close(request: CloseRequest): Promise<CloseAnswer>
  /** Keeps lines with their attempts, which this session has had; a part that came before is not kept again. */
  logs(session: string, parts: readonly LogPart[]): Promise<LogAnswer>
  /** Calls `tell` whenever the engine pushes a directive to this session; returns a function that ends it. */
  listen(
    session: string,
    tell: (told: Told) => void,
    /** Hears that the engine has ended the session, where a connection says so before a call would. */
    ended?: (why: string) => void,
  ): () => void
}

/** A digest over (run, attempt) that two sides compare: order does not matter. */
export const heldDigest = (
  held: readonly { readonly run: string; readonly attempt: number }[],
): string => {
  let a = 0
  let b = 0
  for (const { run, attempt } of held) {
    let hash = 0x811c9dc5
    const text = `${run}#${attempt}`
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
    a = (a + (hash >>> 0)) % 0x1_0000_0000
    b ^= Math.imul(hash, 0x9e3779b1)
  }
  return `${held.length}:${a.toString(36)}:${(b >>> 0).toString(36)}`
}
