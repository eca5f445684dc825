// `leasehold spawn`: starts executors on this machine while a queue waits and no slot is free. Each is `leasehold work`, ends when it
// has had nothing to do for a while, and does not outlive this process.
import { hostname } from 'node:os'
import { httpSpawnPort } from '../../client/spawn-port.ts'
import { startSpawner } from '../../executor/spawning/spawner.ts'
import { flagsOf, systemStarter } from '../../executor/spawning/system-starter.ts'
import { systemPorts } from '../../kernel/ports.ts'
import type { Run } from '../call.ts'
import { loadConfig } from '../config/load-config.ts'
import { durationOption } from '../duration-option.ts'
import { loadWorkflows } from '../load-workflows.ts'
import { processLog } from '../log-lines.ts'
import { untilStopped } from '../signals.ts'
import { wholeNumber } from '../whole-number.ts'

interface Options {
  readonly queue?: string
  readonly max?: string
  readonly after?: string
  readonly cooldown?: string
  readonly startBy?: string
  readonly idle?: string
}

/** What an executor takes to exit beside its drain limit and abort grace. */
const SLACK_MS = 3_000

export const run: Run<Options> = async ({ args: [module = ''], options, out, sources }) => {
  const { config } = loadConfig(sources)
  const ports = systemPorts(processLog(config.logLevel))
  const token = config.token ?? config.executorToken
  const queue = options.queue ?? 'default'
  const max = wholeNumber(options.max, '--max', { least: 1 }) ?? 4
  const policy = {
    max,
    slots: config.slots,
    afterMs: durationOption(options.after, '--after') ?? 0,
    cooldownMs: durationOption(options.cooldown, '--cooldown') ?? 10_000,
    startByMs: durationOption(options.startBy, '--start-by') ?? 60_000,
  }
  // a module that cannot be loaded is found out here, and not by one executor after another
  await loadWorkflows(module, sources.cwd)
  const spawner = startSpawner({
    port: httpSpawnPort({
      url: config.url,
      token,
      actor: null,
      fetch: (url, init) => fetch(url, init),
      timers: ports.timers,
    }),
    starter: systemStarter({
      module,
      cwd: sources.cwd,
      idleMs: durationOption(options.idle, '--idle') ?? 60_000,
      flags: [
        ...flagsOf({
          url: config.url,
          via: config.via,
          build: config.build,
          'drain-ms': config.drainMs,
          'log-level': config.logLevel,
        }),
        ...(config.labels.length === 0 ? [] : ['--labels', config.labels.join(',')]),
      ],
      // a token is never an argument, which others on this machine can read
      env: { ...sources.env, ...(token === null ? {} : { LEASEHOLD_TOKEN: token }) },
    }),
    ports,
    name: `${hostname()}:${process.pid}`,
    queue,
    policy,
    stopMs: config.drainMs + config.abortGraceMs + SLACK_MS,
    tell: (sentence) => out.line(sentence),
  })
  out.line(`spawns executors of ${module} for the queue ${queue} at ${config.url}, at most ${max}`)
  process.exit(await untilStopped(() => spawner.stop(), out))
}
