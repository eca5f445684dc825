// `leasehold attempt`: drives the one attempt that its token is for, and ends. It is what a launcher starts in a process or a pod of
// its own; what it holds lapses, or is handed back, as that of any executor.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { attemptPort } from '../../client/attempt-port.ts'
import { makeExecutor } from '../../executor/executor.ts'
import type { Executor } from '../../executor/executor.ts'
import { httpRenewals } from '../../executor/session/renewal-thread.ts'
import { systemScratch } from '../../executor/preparing/scratch.ts'
import { inside } from '../../executor/authoring/workflow.ts'
import { readAttemptToken } from '../../kernel/attempt-token.ts'
import { messageOf } from '../../kernel/json.ts'
import { systemPorts } from '../../kernel/ports.ts'
import type { Run } from '../call.ts'
import { loadConfig } from '../config/load-config.ts'
import { exit, UsageError } from '../exit.ts'
import { loadWorkflows } from '../load-workflows.ts'
import { processLog } from '../log-lines.ts'
import { secretsOf } from '../config/secrets.ts'
import { untilStopped } from '../signals.ts'

export const run: Run = async ({ args: [module = ''], out, sources }) => {
  const { config } = loadConfig(sources)
  const { url, attemptToken: token } = config
  const grant = token === null ? null : readAttemptToken(token)
  if (token === null || grant === null)
    throw new UsageError(
      `${token === null ? 'there is no token' : 'the token cannot be read'}; expected the one of an attempt, from its launcher, in LEASEHOLD_ATTEMPT_TOKEN`,
    )
  const ports = systemPorts(processLog(config.logLevel))
  const workflows = (await loadWorkflows(module, sources.cwd)).map(inside)
  const name = `attempt ${grant.attempt} of ${grant.run}`
  let end: (code: number) => void = () => undefined
  const ended = new Promise<number>((settle) => (end = settle))
  const executor: Executor = makeExecutor({
    port: attemptPort(
      grant,
      { url, token, ports },
      {
        settled: () => end(exit.ok),
        refused(message) {
          out.error(`${name} cannot be adopted: ${message}`)
          end(exit.conflict)
        },
      },
    ),
    ports,
    workflows,
    session: grant.session,
    slots: { default: 1 },
    build: config.build,
    host: hostname(),
    pid: process.pid,
    drainMs: config.drainMs,
    abortGraceMs: config.abortGraceMs,
    secrets: [...secretsOf(sources, config), token],
    scratch: systemScratch(resolve(sources.cwd, config.scratch)),
    ...(config.killLimitMs === null ? {} : { killLimitMs: config.killLimitMs }),
    renewals: httpRenewals({ url, token }),
    onStopped(error) {
      out.error(messageOf(error))
      end(exit.failed)
    },
  })
  const stopped = untilStopped(() => executor.stop(), out)
  await executor.start()
  out.line(`${name} is driven here, as ${grant.session}`)
  const code = await Promise.race([ended, stopped])
  await executor.stop()
  process.exit(code)
}
