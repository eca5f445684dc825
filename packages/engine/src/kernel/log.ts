// Structured logging, as a port. One line is one fact with its run and attempt beside it.
export type Level = 'debug' | 'info' | 'warn' | 'error'
export type Facts = Readonly<Record<string, unknown>>

export interface Log {
  debug(event: string, facts?: Facts): void
  info(event: string, facts?: Facts): void
  warn(event: string, facts?: Facts): void
  error(event: string, facts?: Facts): void
}

const silent = (): void => undefined

/** Says nothing. */
export const noLog: Log = { debug: silent, info: silent, warn: silent, error: silent }

const ORDER: Readonly<Record<Level, number>> = { debug: 0, info: 1, warn: 2, error: 3 }

/** What a line says of itself. */
const OWN: readonly string[] = ['at', 'level', 'event']

/**
 * Writes each line as JSON through `write`, with the instant that `now` gives; lines below `least` are dropped. A fact that is
 * called `at`, `level` or `event` is kept as `fact_at`, `fact_level` or `fact_event`: what a line says of itself is not a caller's.
 */
export const jsonLog = (
  write: (line: string) => void,
  now: () => number,
  least: Level = 'info',
): Log => {
  const at =
    (level: Level) =>
    (event: string, facts: Facts = {}): void => {
      if (ORDER[level] < ORDER[least]) return
      write(factsText({ at: new Date(now()).toISOString(), level, event, ...beside(facts) }))
    }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

const beside = (facts: Facts): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(readable(facts)).map(([name, value]) => [
      OWN.includes(name) ? `fact_${name}` : name,
      value,
    ]),
  )

const UNREADABLE = '(cannot be shown)'

/** Facts as far as they can be read: a line that says less is better than a caller that fails by its log. */
export const readable = (facts: Facts): Record<string, unknown> => {
  const read: Record<string, unknown> = {}
  for (const key of Object.keys(facts)) {
    try {
      read[key] = facts[key]
    } catch {
      read[key] = UNREADABLE
    }
  }
  return read
}

/** Facts as JSON text, whatever they are. */
export const factsText = (facts: Facts): string => {
  try {
    return JSON.stringify(facts, withErrors)
  } catch {
    return JSON.stringify(
      Object.fromEntries(Object.entries(facts).map(([key, value]) => [key, shownOr(value)])),
    )
  }
}

const shownOr = (value: unknown): unknown => {
  try {
    const text = JSON.stringify(value, withErrors)
    return text === undefined ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return UNREADABLE
  }
}

const withErrors = (_key: string, value: unknown): unknown =>
  value instanceof Error
    ? { name: value.name, message: value.message, ...('code' in value ? { code: value.code } : {}) }
    : typeof value === 'bigint'
      ? `${value}n`
      : value
