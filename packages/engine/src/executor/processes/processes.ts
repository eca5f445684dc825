// The processes that drive isolated attempts, as a port. Each has a group of its own, is labelled with whose it is, and has
// ended only when nothing of its group, and nothing that carries its label, is alive.
import type { ProcessIdentity } from './host-process.ts'
import type { FromBody, ToBody } from './body-protocol.ts'
import type { Sandbox } from '../authoring/isolation.ts'

/** Whose a process is. */
export interface ProcessLabel {
  readonly session: string
  readonly run: string
  readonly attempt: number
}

/** A process and all that it started. */
export interface ProcessGroup {
  readonly leader: ProcessIdentity
  readonly label: ProcessLabel
}

export interface ProcessOrder {
  readonly label: ProcessLabel
  readonly workflow: string
  readonly version: string
  /** Names of the executor's environment that it may have, beside those that every program needs. */
  readonly env: readonly string[]
  /** What its heap may take. */
  readonly memoryMb: number | null
  /** What it is kept from; null for nothing. */
  readonly sandbox: Required<Sandbox> | null
}

export interface ProcessHears {
  readonly message: (message: FromBody) => void
  /** A piece of what it prints; null where nothing follows. */
  readonly printed: (source: 'stdout' | 'stderr', text: string | null) => void
  /** The leader has exited; `how` says it in words. What it started may be alive. */
  readonly exited: (how: string) => void
}

export interface BodyProcess {
  readonly group: ProcessGroup
  /** Says nothing to a process that has gone. */
  send(message: ToBody): void
  /** Whether what it prints is read; while it is not, who prints more waits. */
  flow(on: boolean): void
  /** Reads no more of it. */
  leaveOutput(): void
}

export interface Processes {
  /** Why no process could have this sandbox here; null where one can. Without it none can have any. */
  whyNoSandbox?(sandbox: Required<Sandbox>): Promise<string | null>
  spawn(order: ProcessOrder, hears: ProcessHears): Promise<BodyProcess>
  /** Whether anything of the group is alive. */
  isAlive(group: ProcessGroup): Promise<boolean>
  /** Sends a signal to all that is alive of the group, and to nobody who has its number by chance. */
  signal(group: ProcessGroup, signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}
