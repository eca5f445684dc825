// `leasehold dev`: server and executor in one process, for work at the desk. The store is a file of its own, so what was
// running goes on after a restart.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { AnyWorkflow } from '../../executor/authoring/context.ts'
import type { Executor } from '../../executor/executor.ts'
import { makeExecutor } from '../../executor/executor.ts'
import { systemScratch } from '../../executor/preparing/scratch.ts'
import { systemProcesses } from '../../executor/processes/system-processes.ts'
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Ports } from '../../kernel/ports.ts'
import { systemPorts } from '../../kernel/ports.ts'
import type { RunningServer, ServerConfig } from '../../orchestrator/main.ts'
import { startServer } from '../../orchestrator/main.ts'
import type { Run } from '../call.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load-config.ts'
import { exitOnDefect, exitWhenLost } from '../exit.ts'
import { loadWorkflows } from '../load-workflows.ts'
import { processLog } from '../log-lines.ts'
import { secretsOf } from '../config/secrets.ts'
import { untilStopped } from '../signals.ts'

const FILE = '.leasehold/dev.db'

export const run: Run = async ({ args: [module = ''], out, sources }) => {
  const flags = { file: FILE, logLevel: 'warn', ...sources.flags }
  const { config, values } = loadConfig({ ...sources, flags }, { serves: true })
  const ports = systemPorts(processLog(config.logLevel))
  const workflows = await loadWorkflows(module, sources.cwd)
  const portIsGiven = values.some(({ name, origin }) => name === 'port' && origin !== 'default')
  const server = await listening(
    {
      store: { file: config.file },
      host: '127.0.0.1',
      port: config.port,
      tokens: [],
      hookSecrets: config.hookSecrets,
      settings: config.settings,
      sinks: config.sinks,
      ports,
      onDefect: exitOnDefect,
      onLost: exitWhenLost(out),
    },
    !portIsGiven,
  )
  const executor = await working(
    server,
    config,
    workflows,
    ports,
    resolve(sources.cwd, module),
    secretsOf(sources, config),
  ).catch(async (error: unknown) => {
    await server.stop()
    throw error
  })
  out.line(`dashboard  ${server.url}/`)
  out.line(`API        ${server.url}/v1/runs`)
  out.line(`API docs   ${server.url}/docs`)
  out.line(`store      ${config.file}`)
  out.line(`workflows  ${workflows.map(({ name, version }) => `${name}@${version}`).join(', ')}`)
  const elsewhere = server.url.endsWith(':7400') ? '' : ` --url ${server.url}`
  out.note(`try: npx leasehold start ${workflows[0]?.name ?? '<workflow>'}${elsewhere} --wait`)
  const code = await untilStopped(async () => {
    await executor.stop()
    await server.stop()
  }, out)
  process.exit(code)
}

/** The executor beside the server, started. */
const working = async (
  server: RunningServer,
  config: Config,
  workflows: readonly AnyWorkflow[],
  ports: Ports,
  module: string,
  secrets: readonly string[],
): Promise<Executor> => {
  const executor = makeExecutor({
    port: server.opened.embedded,
    ports,
    workflows,
    slots: { default: config.slots },
    build: 'dev',
    host: hostname(),
    pid: process.pid,
    drainMs: config.drainMs,
    abortGraceMs: config.abortGraceMs,
    secrets,
    scratch: systemScratch(resolve(config.scratch)),
    processes: systemProcesses({ module, env: process.env }),
    ...(config.killLimitMs === null ? {} : { killLimitMs: config.killLimitMs }),
  })
  await executor.start()
  return executor
}

/** On the port that is wanted, or where another program has it, and nobody insisted, on a free one. */
const listening = async (config: ServerConfig, anyPort: boolean): Promise<RunningServer> => {
  try {
    return await startServer(config)
  } catch (error) {
    if (
      !anyPort ||
      !(error instanceof LeaseholdError) ||
      error.code !== 'invalid_config' ||
      !error.message.includes('EADDRINUSE')
    )
      throw error
    return startServer({ ...config, port: 0 })
  }
}
