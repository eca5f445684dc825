// The built command as real processes, as operators run it: a server, executors whose bodies never end, and what stands
// between them.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

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
  /** When it ended, on the clock of `performance`. */
  readonly exited: Promise<number>
}

/** The command, once it has said a line with `ready`; answers what of the line `ready` finds. */
const started = async (
  cwd: string,
  args: readonly string[],
  ready: RegExp,
  settings: Readonly<Record<string, string>>,
): Promise<Started & { readonly said: string }> => {
  const main = fileURLToPath(new URL('../cli/main.js', import.meta.url))
  if (!existsSync(main)) throw new Error('the command is not built; run `npm run build` first')
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    env: { ...process.env, ...settings },
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

/** The commands of one folder, with these settings in their environment. */
export const commandsIn = (cwd: string, settings: Readonly<Record<string, string>> = {}) => ({
  serve: () =>
    started(cwd, ['serve', '--file', 'store.db', '--port', '0'], /http:\/\/[\w.:]+/, settings),
  work: (url: string, ...args: string[]) =>
    started(
      cwd,
      ['work', 'flow.mjs', '--url', url, '--slots', '1', ...args],
      / works at /,
      settings,
    ),
})

/** When bodies have begun in the folder, by the wall clock. */
export const begunIn = (cwd: string): number[] => {
  const file = path.join(cwd, 'begun')
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
  return lines.map((line) => Number(line.split(' ')[0]))
}

/** The same, once there are `count`. */
export const begun = async (cwd: string, count: number): Promise<number[]> => {
  for (;;) {
    const times = begunIn(cwd)
    if (times.length >= count) return times
    await pause(5)
  }
}

export const place = (dir: string): string => {
  writeFileSync(path.join(dir, 'flow.mjs'), FLOW)
  return dir
}

export type Answer = (incoming: IncomingMessage, outgoing: ServerResponse) => void

/** An address in front of a server that passes all on, until it is told to break. */
export const front = async (to: string) => {
  let instead: (incoming: IncomingMessage) => Answer | null = () => null
  const proxy = createServer((incoming, outgoing) => {
    const answer = instead(incoming)
    if (answer) {
      answer(incoming, outgoing)
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
    /** From now on what comes is answered so, where that is not null; what is under way is cut. */
    answer(by: (incoming: IncomingMessage) => Answer | null) {
      instead = by
      proxy.closeAllConnections()
    },
    close() {
      proxy.close()
      proxy.closeAllConnections()
    },
  }
}
