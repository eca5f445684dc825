// The one place that writes to a terminal: results to stdout, errors and progress to stderr. Colours and lines that are
// written over appear only where a terminal shows them, and never with NO_COLOR.
import pc from 'picocolors'

export type Colors = ReturnType<typeof pc.createColors>

export interface Output {
  /** Colours of stdout. */
  readonly colors: Colors
  /** Whether a person watches stdout. */
  readonly live: boolean
  readonly columns: number
  /** A line of the result. */
  line(text?: string): void
  json(value: unknown): void
  /** A line for the person, beside the result. */
  note(text: string): void
  error(text: string): void
  /** A line of JSON beside the result. */
  jsonNote(value: unknown): void
  /** Writes over what `block` wrote before; on anything but a terminal it does nothing. */
  block(lines: readonly string[]): void
}

/** Signs that turn the direction of a line: what stands beside them would be read as something else. In JSON they are the same escaped. */
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

export const makeOutput = (
  stdout: NodeJS.WriteStream = process.stdout,
  stderr: NodeJS.WriteStream = process.stderr,
  env: NodeJS.ProcessEnv = process.env,
): Output => {
  const colored = (stream: NodeJS.WriteStream): boolean =>
    // a pipe says nothing of isTTY, and picocolors takes nothing for its own guess, which a CI turns to yes
    Boolean(stream.isTTY) && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
  const colors = pc.createColors(colored(stdout))
  const errors = pc.createColors(colored(stderr))
  let shown = 0
  const write = (stream: NodeJS.WriteStream, text: string): void =>
    void stream.write(
      text.replace(TURNS, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`),
    )
  const clear = (): void => {
    if (shown > 0) stdout.write(`\u001b[${shown}A\u001b[0J`)
    shown = 0
  }
  return {
    colors,
    live: Boolean(stdout.isTTY) && env['TERM'] !== 'dumb',
    get columns() {
      return stdout.columns || 100
    },
    line(text = '') {
      clear()
      write(stdout, `${text}\n`)
    },
    json: (value) => write(stdout, `${JSON.stringify(value, null, 2)}\n`),
    note: (text) => write(stderr, `${errors.dim(text)}\n`),
    error: (text) => write(stderr, `${errors.red('leasehold:')} ${text}\n`),
    jsonNote: (value) => write(stderr, `${JSON.stringify(value)}\n`),
    block(lines) {
      if (!stdout.isTTY) return
      clear()
      const width = Math.max(20, (stdout.columns || 100) - 1)
      write(stdout, lines.map((line) => `${clipped(line, width)}\n`).join(''))
      shown = lines.length
    },
  }
}

/** Cut to what fits on a line, so that a block has as many rows as it has lines. */
const clipped = (text: string, width: number): string => {
  let room = width
  // eslint-disable-next-line no-control-regex
  return text.replace(/\u001b\[[0-9;]*m|[\s\S]/gu, (part) => {
    if (part.length > 1 && part.startsWith('\u001b')) return part
    room -= 1
    return room >= 0 ? part : ''
  })
}
