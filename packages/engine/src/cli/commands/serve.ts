// `leasehold serve`: the server, on a SQLite file or a PostgreSQL database, until it is told to stop.
import { systemPorts } from '../../kernel/ports.ts'
import { namesOf } from '../../model/store-at.ts'
import { startServer } from '../../orchestrator/main.ts'
import type { Run } from '../call.ts'
import { loadConfig } from '../config/load-config.ts'
import { storeOf } from '../config/store.ts'
import { exitOnDefect, exitWhenLost } from '../exit.ts'
import { processLog } from '../log-lines.ts'
import { untilStopped } from '../signals.ts'
import { tokensOf } from '../config/tokens.ts'

export const run: Run = async ({ out, sources }) => {
  const { config } = loadConfig(sources, { serves: true })
  const ports = systemPorts(processLog(config.logLevel))
  const store = storeOf(config)
  const server = await startServer({
    store,
    host: config.host,
    port: config.port,
    tokens: tokensOf(config),
    hookSecrets: config.hookSecrets,
    settings: config.settings,
    sinks: config.sinks,
    ports,
    onDefect: exitOnDefect,
    onLost: exitWhenLost(out),
  })
  out.line(`leasehold serves ${namesOf(store)} at ${server.url}`)
  const code = await untilStopped(() => server.stop(), out)
  process.exit(code)
}
