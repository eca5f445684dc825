// Stops as operators see them: a lease of an hour, and a body that never ends, so that nothing but the hand-back can bring
// its run on.
import { connect } from '../src/client/connect.ts'
import type { Answer } from './commands.ts'
import { begun, commandsIn, front, place } from './commands.ts'
import type { Figures } from './figures.ts'
import { median, percentile, stopwatch } from './figures.ts'

const DRAIN_MS = 300
const ABORT_MS = 200
/** What an executor grants a body that goes on, before it leaves without it. */
const GRACE_MS = DRAIN_MS + ABORT_MS

const DRAIN = ['--drain-ms', `${DRAIN_MS}ms`]
const commands = (cwd: string) =>
  commandsIn(cwd, {
    LEASEHOLD_LEASE_MS: '1h',
    LEASEHOLD_RENEW_MS: '10m',
    LEASEHOLD_ABORT_GRACE_MS: `${ABORT_MS}ms`,
  })

/** `count` times SIGTERM to the executor that drives the run, beside one that waits for work. */
const stops = async (dir: string, count: number): Promise<Figures> => {
  const cwd = place(dir)
  const { serve, work } = commands(cwd)
  const server = await serve()
  const client = connect({ url: server.said })
  const exits: number[] = []
  const elsewhere: number[] = []
  let holder = await work(server.said, ...DRAIN)
  await client.start('holds', null)
  await begun(cwd, 1)
  for (let i = 1; i <= count; i++) {
    const next = await work(server.said, ...DRAIN)
    const at = Date.now()
    const elapsed = stopwatch()
    holder.child.kill('SIGTERM')
    await holder.exited
    exits.push(elapsed() - GRACE_MS)
    elsewhere.push(((await begun(cwd, i + 1))[i] ?? Number.NaN) - at - GRACE_MS)
    holder = next
  }
  for (const { child, exited } of [holder, server]) {
    child.kill('SIGKILL')
    await exited
  }
  return {
    exit: median(exits),
    exit99: percentile(exits, 0.99),
    elsewhere: median(elsewhere),
    elsewhere99: percentile(elsewhere, 0.99),
  }
}

const status =
  (code: number): Answer =>
  (_incoming, outgoing) =>
    void outgoing.writeHead(code).end()

/** How an orchestrator is broken; null is one that is gone. */
const BROKEN: Readonly<Record<string, Answer | null>> = {
  gone: null,
  silent: () => undefined,
  cuts: (incoming) => void incoming.socket.destroy(),
  404: status(404),
  500: status(500),
  501: status(501),
}

/** SIGTERM while a body goes on and the orchestrator is broken, `times` times in each way. */
const brokenStops = async (dir: string, times: number): Promise<Figures> => {
  const cwd = place(dir)
  const { serve, work } = commands(cwd)
  const server = await serve()
  const client = connect({ url: server.said })
  const worst: Record<string, number> = {}
  let bodies = 0
  for (const [name, how] of Object.entries(BROKEN))
    for (let i = 0; i < times; i++) {
      const between = await front(server.said)
      const executor = await work(between.url, ...DRAIN)
      const { id } = await client.start('holds', null)
      await begun(cwd, ++bodies)
      if (how) between.answer(() => how)
      else between.close()
      const elapsed = stopwatch()
      executor.child.kill('SIGTERM')
      await executor.exited
      worst[name] = Math.max(worst[name] ?? 0, elapsed() - GRACE_MS)
      between.close()
      await client.cancel(id)
    }
  server.child.kill('SIGKILL')
  await server.exited
  return { ...worst, worst: Math.max(...Object.values(worst)) }
}

export const stopFigures: Readonly<Record<string, (dir: string, n: number) => Promise<Figures>>> = {
  stop: stops,
  broken: brokenStops,
}
