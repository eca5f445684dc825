// Lines out of what a process prints, in the pieces in which it comes. A line that does not end keeps its beginning and its end.

/** Of a line, before anything is taken out of it: far more than what is kept, so that no secret is cut at its edge. */
const RAW_MAX = 64 * 1024

export interface LineReader {
  read(text: string): void
  /** Nothing follows: what has no line break at its end is a line too. */
  end(): void
}

/** `hear` gets each line, and how many characters of its middle are missing. */
export const lineReader = (hear: (text: string, missing: number) => void): LineReader => {
  let head = ''
  let tail = ''
  let missing = 0
  const add = (text: string): void => {
    const room = RAW_MAX / 2 - head.length
    if (room > 0) head += text.slice(0, room)
    const rest = room > 0 ? text.slice(room) : text
    if (rest === '') return
    tail += rest
    const over = tail.length - RAW_MAX / 2
    if (over <= 0) return
    missing += over
    tail = tail.slice(over)
  }
  const flush = (): void => {
    const line = `${head}${tail}`
    hear(line.endsWith('\r') ? line.slice(0, -1) : line, missing)
    head = ''
    tail = ''
    missing = 0
  }
  return {
    read(text) {
      let from = 0
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
        add(text.slice(from, at))
        flush()
        from = at + 1
      }
      if (from < text.length) add(text.slice(from))
    },
    end() {
      if (head !== '') flush()
    },
  }
}
