// The processes under torture: each is started again when it ends, until it is told to stay away. One that ends by itself
// after it was ready is a violation, and so is an error that it logs as its own mistake.
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export type Role = 'server' | 'executor' | 'embedded'

interface ProgramOptions {
  readonly name: string
  readonly role: Role
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** A part of the line on stdout that says that it is ready. */
  readonly ready: string
  readonly onReady?: (line: string) => void
  /** Its log, line by line. */
  readonly onEvent: (level: string, event: string, program: string, line: string) => void
  /** It ended by itself. */
  readonly onDeath: (program: string, how: string, said: string) => void
}

/** How a process that was told to stop did. */
export interface Stop {
  readonly program: string
  readonly graceMs: number
  readonly how: number | string
  readonly ms: number
  /** The last that it said. */
  readonly said: string
}

const AGAIN_MS = 300
const SAID_MAX = 20_000

export class Program {
  readonly name: string
  readonly role: Role
  starts = 0
  /** Ends before it was ready, as while the database is away. */
  refused = 0
  readonly stops: Stop[] = []
  readonly #options: ProgramOptions
  #child: ChildProcess | null = null
  #up = false
  /** Somebody has ended this life of it, or is about to. */
  #struck = false
  #away = false
  #said = ''
  #ended: Promise<number | string> = Promise.resolve(0)

  constructor(options: ProgramOptions) {
    this.name = options.name
    this.role = options.role
    this.#options = options
  }

  get up(): boolean {
    return this.#up
  }

  start(): void {
    const { args, cwd, env, ready } = this.#options
    this.starts += 1
    this.#up = false
    this.#struck = false
    const child = spawn(process.execPath, [...args], {
      cwd,
      env: { ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    const log = createWriteStream(path.join(cwd, 'logs', `${this.name}-${this.starts}.log`))
    this.#said = ''
    const lines = (take: (line: string) => void): ((data: Buffer) => void) => {
      let rest = ''
      return (data) => {
        log.write(data)
        this.#said = (this.#said + data.toString()).slice(-SAID_MAX)
        const parts = (rest + data.toString()).split('\n')
        rest = parts.pop() ?? ''
        for (const line of parts) take(line)
      }
    }
    child.stdout.on(
      'data',
      lines((line) => {
        if (this.#up || !line.includes(ready)) return
        this.#up = true
        this.#options.onReady?.(line)
      }),
    )
    child.stderr.on(
      'data',
      lines((line) => this.#logged(line)),
    )
    this.#ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        log.end()
        const how = signal ?? code ?? 0
        if (this.#up && !this.#struck) this.#options.onDeath(this.name, String(how), this.#said)
        if (!this.#up && !this.#struck) this.refused += 1
        this.#up = false
        this.#child = null
        resolve(how)
        if (!this.#away) setTimeout(() => this.#away || this.start(), AGAIN_MS)
      })
    })
  }

  #logged(line: string): void {
    if (!line.startsWith('{')) return
    try {
      const { level, event } = JSON.parse(line) as { level?: string; event?: string }
      if (level && event) this.#options.onEvent(level, event, this.name, line)
    } catch {
      // a line that a kill cut
    }
  }

  /** Sends it a signal; false when it is not there. One that ends it is announced by `ending`. */
  signal(signal: NodeJS.Signals, ending: boolean): boolean {
    if (this.#child === null) return false
    if (ending) this.#struck = true
    return this.#child.kill(signal)
  }

  /** SIGTERM, and SIGKILL once the grace is over; answers how it ended. */
  async terminate(graceMs: number): Promise<number | string> {
    const ended = this.#ended
    const child = this.#child
    const began = performance.now()
    if (!this.signal('SIGTERM', true)) return 'absent'
    if (graceMs === 0) child?.kill('SIGKILL')
    const over = new AbortController()
    const killed = pause(graceMs, undefined, { signal: over.signal }).then(
      () => child?.kill('SIGKILL'),
      () => undefined,
    )
    const how = await ended
    over.abort()
    await killed
    const ms = performance.now() - began
    const said = this.#said.trim().split('\n').at(-1) ?? ''
    this.stops.push({ program: this.name, graceMs, how, ms, said })
    return how
  }

  /** Ends it for good. */
  async stop(graceMs: number): Promise<number | string> {
    this.#away = true
    return this.terminate(graceMs)
  }
}
