// `leasehold work`: an executor over HTTP or a WebSocket. It waits for its server, drives what it claims, and when it is told to stop
// lets steps finish and hands its runs back.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { executorPorts } from '../../client/executor-ports.ts'
import { makeExecutor } from '../../executor/executor.ts'
import type { Executor } from '../../executor/executor.ts'
import { failureOf } from '../../executor/authoring/failure.ts'
import { httpRenewals } from '../../executor/session/renewal-thread.ts'
import { systemScratch } from '../../executor/preparing/scratch.ts'
import { systemProcesses } from '../../executor/processes/system-processes.ts'
import { codes } from '../../kernel/codes.ts'
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Ports } from '../../kernel/ports.ts'
import { systemPorts } from '../../kernel/ports.ts'
import { sleep } from '../../kernel/timers.ts'
import type { Run } from '../call.ts'
import { loadConfig } from '../config/load-config.ts'
import { clusterLauncher } from '../cluster-launcher.ts'
import { durationOption } from '../duration-option.ts'
import { exit, exitCodeOf, tell } from '../exit.ts'
import { untilIdle } from '../idling.ts'
import { loadWorkflows } from '../load-workflows.ts'
import { processLog } from '../log-lines.ts'
import { secretsOf } from '../config/secrets.ts'
import { untilStopped } from '../signals.ts'

const AGAIN_MS = 1_000

interface Options {
  readonly idleMs?: string
  readonly startByMs?: string
  readonly session?: string
  readonly tied?: boolean
}

export const run: Run<Options> = async ({ args: [module = ''], options, out, sources }) => {
  const { config } = loadConfig(sources)
  const idleMs = durationOption(options.idleMs, '--idle-ms')
  const startByMs = durationOption(options.startByMs, '--start-by-ms')
  const ports = systemPorts(processLog(config.logLevel))
  const workflows = await loadWorkflows(module, sources.cwd)
  const token = config.token ?? config.executorToken
  const executor: Executor = makeExecutor({
    port: executorPorts[config.via]({ url: config.url, token, ports }),
    ports,
    workflows,
    queues: config.queues,
    labels: config.labels,
    slots: { default: config.slots },
    build: config.build,
    ...(options.session === undefined ? {} : { session: options.session }),
    host: hostname(),
    pid: process.pid,
    drainMs: config.drainMs,
    abortGraceMs: config.abortGraceMs,
    secrets: secretsOf(sources, config),
    scratch: systemScratch(resolve(sources.cwd, config.scratch)),
    ...(config.killLimitMs === null ? {} : { killLimitMs: config.killLimitMs }),
    ...(config.jobTemplate === null
      ? {}
      : {
          launcher: clusterLauncher({ ...config, jobTemplate: config.jobTemplate }, sources, ports),
        }),
    processes: systemProcesses({ module: resolve(sources.cwd, module), env: process.env }),
    renewals: httpRenewals({ url: config.url, ...(token === null ? {} : { token }) }),
    onStopped: (error) => {
      tell(error, out)
      void executor.stop().finally(() => process.exit(exitCodeOf(error)))
    },
  })
  const stopping = new AbortController()
  const late =
    startByMs === undefined
      ? null
      : ports.timers.after(startByMs, () => {
          out.error(`no server at ${config.url} has let it in within ${startByMs} ms; stopping`)
          process.exit(exit.unreachable)
        })
  const starting = started(executor, ports, stopping.signal, (error) => {
    ports.log.warn('server.awaited', { url: config.url, error })
    out.note(
      `no server is ready at ${config.url} yet; waiting for one (\`leasehold serve\` starts it)`,
    )
  })
  const stopped = untilStopped(async () => {
    stopping.abort()
    // a registration that is on its way is let arrive, so that its session can be closed
    await starting.catch(() => undefined)
    await executor.stop()
  }, out)
  process.on('uncaughtException', (error) => {
    ports.log.error('process.uncaught', { error })
    // whatever was thrown: null has neither a stack nor a message
    const { stack, message } = failureOf(error)
    out.error(`an error nobody caught: ${stack ?? message}; handing back and stopping`)
    void executor.stop().finally(() => process.exit(exit.failed))
  })

  // a parent that has gone can tell nobody to stop
  if (options.tied === true)
    process.stdin.resume().once('end', () => process.kill(process.pid, 'SIGTERM'))
  await starting
  late?.()
  if (!stopping.signal.aborted) {
    const names = workflows.map(({ name, version }) => `${name}@${version}`).join(', ')
    out.line(`executor ${executor.status().session ?? ''} works at ${config.url} for ${names}`)
    if (idleMs !== undefined)
      void untilIdle(executor, ports, idleMs, stopping.signal).then((how) => {
        if (how === 'idle') process.kill(process.pid, 'SIGTERM')
      })
  }
  process.exit(await stopped)
}

/** Starts, again each second while no server answers or the one that does is shutting down; one that says no is final. */
const started = async (
  executor: Executor,
  ports: Ports,
  signal: AbortSignal,
  awaits: (error: LeaseholdError) => void,
): Promise<void> => {
  let told = false
  for (;;) {
    try {
      if (!signal.aborted) await executor.start()
      return
    } catch (error) {
      if (
        !(error instanceof LeaseholdError) ||
        (codes[error.code].kind !== 'fault' && error.code !== 'draining')
      )
        throw error
      if (!told) awaits(error)
      told = true
      await sleep(ports.timers, AGAIN_MS, signal)
    }
  }
}
