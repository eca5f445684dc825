// The program of an isolated attempt: it loads the module of its executor, drives what it is given over its channel, and
// ends, with all that it started, when that is done or when the channel closes.
import type { FromBody, ToBody } from '../executor/processes/body-protocol.ts'
import { serveBody } from '../executor/processes/body.ts'
import { messageOf } from '../kernel/json.ts'
import { systemPorts } from '../kernel/ports.ts'
import { loadWorkflows } from '../cli/load-workflows.ts'
import { processLog } from '../cli/log-lines.ts'

/** The whole group, this process with it. */
const endAll = (): void => {
  try {
    process.kill(-process.pid, 'SIGKILL')
  } finally {
    process.exit(1)
  }
}

const say = (message: FromBody, then: () => void = () => undefined): void => {
  if (process.connected) process.send?.(message, undefined, {}, () => then())
}

/**
 * What is printed is with the executor when the call returns, so that it is there also where this process is killed next; and
 * one that prints more than is read waits, instead of filling its memory.
 */
const printAtOnce = (): void => {
  for (const stream of [process.stdout, process.stderr]) {
    const { _handle: handle } = stream as unknown as {
      readonly _handle?: { readonly setBlocking?: (on: boolean) => void }
    }
    handle?.setBlocking?.(true)
  }
}

printAtOnce()
process.on('disconnect', endAll)
const [, , module = ''] = process.argv
try {
  const workflows = await loadWorkflows(module, process.cwd())
  const hear = serveBody(workflows, systemPorts(processLog('warn')), {
    send: (message) => say(message),
    // what was said before is on its way before this is
    end: () => say({ kind: 'pong' }, () => process.exit(0)),
  })
  process.on('message', (message) => hear(message as ToBody))
  say({ kind: 'loaded' })
} catch (error) {
  say({ kind: 'unfit', message: messageOf(error) }, () => process.exit(1))
}
