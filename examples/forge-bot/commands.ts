// Commands of the built program, each a real process.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { root } from '../../scripts/files.ts'

export interface Command {
  /** Resolves with the first line that has this part; rejects when it ends before. */
  line(part: string): Promise<string>
  readonly ended: Promise<void>
  kill(signal: NodeJS.Signals): void
}

const program = path.join(root, 'packages/engine/dist/cli/main.js')

export const startCommand = (
  args: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Command => {
  const child = spawn(process.execPath, [program, ...args], {
    cwd,
    env: { ...process.env, LEASEHOLD_LOG_LEVEL: 'error', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  let heard: () => void = () => undefined
  let over = false
  child.stdout.on('data', (data: Buffer) => {
    text += data.toString()
    heard()
  })
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      over = true
      heard()
      resolve()
    })
  })
  return {
    ended,
    kill: (signal) => void child.kill(signal),
    line: (part) =>
      new Promise((resolve, reject) => {
        heard = () => {
          const found = text.split('\n').find((line) => line.includes(part))
          if (found !== undefined) resolve(found)
          else if (over) reject(new Error(`leasehold ${args.join(' ')} has ended:\n${text}`))
        }
        heard()
      }),
  }
}
