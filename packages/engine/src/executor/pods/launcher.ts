// Where attempts are driven by a pod each, as a port. What is made there is labelled with whose it is; a repeat finds it again, and
// it has ended only when nothing of it is alive.
import type { Grant } from '../../model/work.ts'

/** Whose a pod is. */
export interface PodLabel {
  readonly session: string
  readonly run: string
  readonly attempt: number
}

export interface PodOrder {
  readonly label: PodLabel
  /** The session that its process will have. */
  readonly runner: string
  /** What it adopts its attempt by. It is to be seen by nobody else. */
  readonly token: string
  /** Until when it may begin, on the store's clock. */
  readonly startBy: number
}

/** What is seen of it. `none` and `ended` are proof that nothing of it is alive; `note` says what was seen, for people. */
export interface PodSeen {
  readonly state: 'none' | 'waiting' | 'running' | 'going' | 'ended'
  readonly note: string
}

/** What another launcher has made, which may be gone. */
export interface LeftPod {
  readonly label: PodLabel
  readonly runner: string
  readonly startBy: number
  readonly seen: PodSeen
}

/** No repeat of the order would be taken. */
export class OrderRefused extends Error {
  override readonly name = 'OrderRefused'
}

export interface Pods {
  /** Makes it, once however often it is asked. Rejects with `OrderRefused` where that is final; else it is unknown what was done. */
  make(order: PodOrder): Promise<void>
  /** What is there now or later, never before the question. */
  look(label: PodLabel): Promise<PodSeen>
  /** Asks for the end of exactly the one that was made for this runner, whoever made it. It has ended when `look` says so. */
  remove(label: PodLabel, runner: string): Promise<void>
  /** What launchers other than this one have made here. */
  left(): Promise<readonly LeftPod[]>
}

/** What an executor starts pods with. */
export interface Launcher {
  readonly pods: Pods
  readonly grant: Grant
  /** Reports that nothing of the process of a session is alive. */
  readonly exited: (session: string, evidence: string) => Promise<void>
  /** How long a pod may take to adopt its attempt. Default 5 min. */
  readonly startByMs?: number
}
