// `leasehold/executor`: drives runs in a process of its own, over HTTP or a WebSocket.
import type { ExecutorOptions, Executor } from '../executor/executor.ts'
import { makeExecutor } from '../executor/executor.ts'
import { httpRenewals } from '../executor/session/renewal-thread.ts'
import { temporaryScratch } from '../executor/preparing/scratch.ts'
import { systemProcesses } from '../executor/processes/system-processes.ts'
import { executorPorts } from '../client/executor-ports.ts'
import type { Log } from '../kernel/log.ts'
import { noLog } from '../kernel/log.ts'
import { systemPorts } from '../kernel/ports.ts'

export interface RemoteExecutorOptions extends Omit<
  ExecutorOptions,
  'port' | 'ports' | 'renewals' | 'processes'
> {
  /** The server's root, such as `http://127.0.0.1:7400`. */
  readonly url: string
  readonly token?: string
  /** How it reaches the server: by long polling, or over a WebSocket on which work is offered. Default `http`. */
  readonly via?: 'http' | 'websocket'
  /** Default: silent. */
  readonly log?: Log
  /** The module that exports `workflows`, as a path or URL: processes of isolated ones load it. */
  readonly module?: string
  /** How long the main loop may hang while its lease is still renewed. Default 60 s. */
  readonly stallLimitMs?: number
}

/** An executor of a server; its lease is renewed from a thread of its own. Call `start`, and `stop` at the end. */
export const remoteExecutor = ({
  url,
  token,
  via = 'http',
  log = noLog,
  module,
  stallLimitMs,
  ...options
}: RemoteExecutorOptions): Executor => {
  const ports = systemPorts(log)
  return makeExecutor({
    pid: process.pid,
    scratch: temporaryScratch(),
    ...(stallLimitMs === undefined ? {} : { stallLimitMs }),
    ...(module === undefined ? {} : { processes: systemProcesses({ module, env: process.env }) }),
    ...options,
    port: executorPorts[via]({ url, token: token ?? null, ports }),
    ports,
    renewals: httpRenewals({ url, ...(token === undefined ? {} : { token }) }, stallLimitMs),
  })
}

export type { Executor, ExecutorStatus } from '../executor/executor.ts'
export { systemScratch } from '../executor/preparing/scratch.ts'
export { jsonLog } from '../kernel/log.ts'
export type { Log } from '../kernel/log.ts'
