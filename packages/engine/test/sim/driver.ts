// What a host runs: an executor, scripted or real, as the simulator drives it.
import type { Node } from './world.ts'

/** What the simulator needs of an executor, scripted or real. */
export interface Driver {
  readonly node: Node
  readonly session: string
  readonly busy: boolean
  readonly room: number
  serves(workflow: string): boolean
  /** Whether a body of the run is still alive in it, of whatever attempt: until it has settled no other one starts here. */
  settling(run: string): boolean
  start(): void
  stop(): Promise<void>
  /** Loses something it holds from memory; false where it cannot. */
  forget(): boolean
  /** Its process has ended. */
  ended?(): void
}
