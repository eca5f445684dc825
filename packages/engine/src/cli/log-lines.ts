// The log of a process: one JSON object a line on stderr, or on a terminal the same facts as a person reads them.
import type { Level, Log } from '../kernel/log.ts'
import { jsonLog } from '../kernel/log.ts'
import { systemTime } from '../kernel/time.ts'

export const processLog = (least: Level, stderr: NodeJS.WriteStream = process.stderr): Log =>
  jsonLog(
    (line) => void stderr.write(`${stderr.isTTY ? readable(line) : line}\n`),
    systemTime.now,
    least,
  )

const readable = (line: string): string => {
  const { at, level, event, ...facts } = JSON.parse(line) as Record<string, unknown>
  const told = Object.entries(facts).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return [String(at).slice(11, 23), String(level).padEnd(5), event, ...told].join(' ')
}
