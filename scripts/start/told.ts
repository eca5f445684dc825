// How far it is, for whoever watches: one line that is written over on a terminal, else a line every few seconds.
const EVERY_MS = 3_000

export interface Told {
  say(line: string): void
  progress(line: string): void
}

export const makeTold = (stdout: NodeJS.WriteStream = process.stdout): Told => {
  let open = false
  let lastAt = 0
  const close = (): void => {
    if (open) stdout.write('\r\u001b[2K')
    open = false
  }
  return {
    say(line) {
      close()
      stdout.write(`${line}\n`)
    },
    progress(line) {
      if (stdout.isTTY) {
        stdout.write(`\r\u001b[2K${line.slice(0, (stdout.columns || 100) - 1)}`)
        open = true
      } else if (Date.now() - lastAt >= EVERY_MS) {
        lastAt = Date.now()
        stdout.write(`${line}\n`)
      }
    },
  }
}
