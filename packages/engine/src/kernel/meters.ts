// Figures for machines: counters and histograms of this process, and the text in which Prometheus reads them. A figure has as
// many series as its labels have values; past a bound the rest is one, so that no name that users choose can grow without end.
export type Labels = Readonly<Record<string, string>>

export interface Sample {
  readonly labels: Labels
  readonly value: number
  /** Behind the family’s name: `_sum`, `_count` and `_bucket` of a histogram. */
  readonly suffix?: string
}

/** One figure with all its series. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly Sample[]
}

export interface Counter {
  add(labels: Labels, by?: number): void
  family(): Family
}

export interface Histogram {
  /** Seconds. */
  observe(labels: Labels, seconds: number): void
  family(): Family
}

/** Series of one figure; what is past them is counted under `other`. */
export const SERIES_MAX = 200

const OTHER = 'other'

/** The values of a figure by its labels, no more than so many. */
const bounded = <V>(make: () => V) => {
  const all = new Map<string, { readonly labels: Labels; readonly value: V }>()
  const at = (labels: Labels): { readonly labels: Labels; value: V } => {
    const key = Object.values(labels).join('\u0000')
    const found = all.get(key)
    if (found) return found
    const names = Object.keys(labels)
    if (all.size >= SERIES_MAX && names.some((name) => labels[name] !== OTHER))
      return at(Object.fromEntries(names.map((name) => [name, OTHER])))
    const made = { labels, value: make() }
    all.set(key, made)
    return made
  }
  return { at, all: () => [...all.values()] }
}

export const counter = (name: string, help: string): Counter => {
  const series = bounded(() => 0)
  return {
    add(labels, by = 1) {
      series.at(labels).value += by
    },
    family: () => ({ name, help, type: 'counter', samples: series.all() }),
  }
}

/** From a quick transaction to a minute. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]

export const histogram = (
  name: string,
  help: string,
  bounds: readonly number[] = SECONDS,
): Histogram => {
  const series = bounded(() => ({ sum: 0, count: 0, within: bounds.map(() => 0) }))
  return {
    observe(labels, seconds) {
      const { value } = series.at(labels)
      value.sum += seconds
      value.count += 1
      const at = bounds.findIndex((bound) => seconds <= bound)
      if (at >= 0) value.within[at] = (value.within[at] ?? 0) + 1
    },
    family: () => ({
      name,
      help,
      type: 'histogram',
      samples: series.all().flatMap(({ labels, value: { sum, count, within } }) => {
        let below = 0
        return [
          ...within.map((n, i) => ({
            suffix: '_bucket',
            labels: { ...labels, le: String(bounds[i]) },
            value: (below += n),
          })),
          { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: count },
          { suffix: '_sum', labels, value: sum },
          { suffix: '_count', labels, value: count },
        ]
      }),
    }),
  }
}

/** A figure as it is now, from its series; past the bound the last are left out. */
export const gauge = (name: string, help: string, samples: readonly Sample[]): Family => ({
  name,
  help,
  type: 'gauge',
  samples: samples.slice(0, SERIES_MAX),
})

/** The content type of what `expose` writes. */
export const EXPOSITION = 'text/plain; version=0.0.4; charset=utf-8'

/** All figures in the text format of Prometheus. */
export const expose = (families: readonly Family[]): string =>
  families
    .map(({ name, help, type, samples }) =>
      [
        `# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}`,
        `# TYPE ${name} ${type}`,
        ...samples.map(
          ({ labels, value, suffix = '' }) => `${name}${suffix}${written(labels)} ${value}`,
        ),
        '',
      ].join('\n'),
    )
    .join('')

const written = (labels: Labels): string => {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/[\\\n"]/g, escaped)}"`,
  )
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escaped = (sign: string): string => (sign === '\n' ? '\\n' : `\\${sign}`)
