// Stops as operators see them: the built command as real processes, a lease of an hour, and a body that never ends, so that
// nothing but the hand-back can bring its run on.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { connect } from '../src/client/client.ts'
import type { Figures } from './figures.ts'
import { median, percentile, stopwatch } from './figures.ts'

const DRAIN_MS = 300
const ABORT_MS = 200
/** What an executor grants a body that goes on, before it leaves without it. */
const GRACE_MS = DRAIN_MS + ABORT_MS

const FLOW = `import { appendFileSync } from 'node:fs'
import { workflow } from '${new URL('../entry/index.js', import.meta.url).href}'
export const holds = workflow('holds', (ctx) =>
  ctx.step('io', () => {
    appendFileSync('begun', Date.now() + ' ' + process.pid + '\\n')
    return new Promise(() => undefined)
  }),
)
`

interface Started {
  readonly child: ChildProcess
  readonly exited: Promise<number>
}

/** The command, once it has said a line with `ready`; answers what of the line `pattern` finds. */
const started = async (
  cwd: string,
  args: readonly string[],
  ready: RegExp,
): Promise<Started & { readonly said: string }> => {
  const main = fileURLToPath(new URL('../cli/main.js', import.meta.url))
  if (!existsSync(main)) throw new Error('the command is not built; run `npm run build` first')
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    env: {
      ...process.env,
      LEASEHOLD_LEASE_MS: '1h',
      LEASEHOLD_RENEW_MS: '10m',
      LEASEHOLD_ABORT_GRACE_MS: `${ABORT_MS}ms`,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = new Promise<number>((resolve) =>
    child.on('exit', () => resolve(performance.now())),
  )
  const said = await new Promise<string>((resolve, reject) => {
    let all = ''
    child.stdout.on('data', (data: Buffer) => {
      all += data.toString()
      const [found] = ready.exec(all) ?? []
      if (found !== undefined) resolve(found)
    })
    child.on('exit', () => reject(new Error(`${args.join(' ')} ended before it was ready`)))
  })
  return { child, exited, said }
}

const serving = (cwd: string) =>
  started(cwd, ['serve', '--file', 'store.db', '--port', '0'], /http:\/\/[\w.:]+/)

const working = (cwd: string, url: string) =>
  started(
    cwd,
    ['work', 'flow.mjs', '--url', url, '--drain-ms', `${DRAIN_MS}ms`, '--slots', '1'],
    / works at /,
  )

/** The times at which bodies have begun, once there are `count`. */
const begun = async (cwd: string, count: number): Promise<number[]> => {
  const file = path.join(cwd, 'begun')
  for (;;) {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
    if (lines.length >= count) return lines.map((line) => Number(line.split(' ')[0]))
    await pause(5)
  }
}

const place = (dir: string): string => {
  writeFileSync(path.join(dir, 'flow.mjs'), FLOW)
  return dir
}

/** `count` times SIGTERM to the executor that drives the run, beside one that waits for work. */
const stops = async (dir: string, count: number): Promise<Figures> => {
  const cwd = place(dir)
  const server = await serving(cwd)
  const client = connect({ url: server.said })
  const exits: number[] = []
  const elsewhere: number[] = []
  let holder = await working(cwd, server.said)
  await client.start('holds', null)
  await begun(cwd, 1)
  for (let i = 1; i <= count; i++) {
    const next = await working(cwd, server.said)
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

type Answer = (incoming: IncomingMessage, outgoing: ServerResponse) => void

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

/** An address in front of a server that passes all on, until it is told to break. */
const front = async (to: string) => {
  let broken: Answer | null = null
  const proxy = createServer((incoming, outgoing) => {
    if (broken) {
      broken(incoming, outgoing)
      return
    }
    const passed = request(
      new URL(incoming.url ?? '/', to),
      { method: incoming.method, headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(outgoing)
      },
    )
    passed.on('error', () => incoming.socket.destroy())
    outgoing.on('close', () => passed.destroy())
    incoming.pipe(passed)
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    break(how: Answer | null) {
      broken = how
      if (how === null) proxy.close()
      proxy.closeAllConnections()
    },
    close() {
      proxy.close()
      proxy.closeAllConnections()
    },
  }
}

/** SIGTERM while a body goes on and the orchestrator is broken, `times` times in each way. */
const brokenStops = async (dir: string, times: number): Promise<Figures> => {
  const cwd = place(dir)
  const server = await serving(cwd)
  const client = connect({ url: server.said })
  const worst: Record<string, number> = {}
  let bodies = 0
  for (const [name, how] of Object.entries(BROKEN))
    for (let i = 0; i < times; i++) {
      const between = await front(server.said)
      const executor = await working(cwd, between.url)
      const { id } = await client.start('holds', null)
      await begun(cwd, ++bodies)
      between.break(how)
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
