// The ways in of executors in other processes, by their names.
import type { Ports } from '../kernel/ports.ts'
import type { ExecutorPort } from '../model/work.ts'
import { httpExecutorPort } from './executor-port.ts'
import { socketExecutorPort } from './socket-executor-port.ts'

export interface ReachOptions {
  readonly url: string
  readonly token: string | null
  readonly ports: Pick<Ports, 'timers' | 'random' | 'log'>
}

export const executorPorts: Readonly<
  Record<'http' | 'websocket', (options: ReachOptions) => ExecutorPort>
> = { http: httpExecutorPort, websocket: socketExecutorPort }
