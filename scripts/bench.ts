// `npm run bench`: ours and the bare-SQL limit side by side, each measurement in a process of its own, taken in turn so
// that what else the machine does falls on both. `-- --quick`, `-- --json`, `-- --only P3,P4`, `-- --dir <folder>`
// for files elsewhere: a disk that syncs slowly flatters us, a memory disk shows what a run costs the processor.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { isMain, root } from './files.ts'

type Figures = Readonly<Record<string, number>>

interface Figure {
  readonly id: string
  readonly what: string
  /** What of the answer is shown, with its unit. */
  readonly shown: readonly { readonly of: string; readonly what: string; readonly unit: string }[]
  readonly size: number
  readonly quick: number
  readonly limit: boolean
  /** The bar: ours ÷ limit at least or at most, or a figure of ours at most. */
  readonly bar: {
    readonly of: string
    readonly ratio?: 'least' | 'most'
    readonly value: number
  }[]
}

const rate = [{ of: 'rate', what: '', unit: '/s' }]
const atLeast = (value: number): Figure['bar'] => [{ of: 'rate', ratio: 'least', value }]

// prettier-ignore
export const figures: readonly Figure[] = [
  { id: 'P1', what: 'start one by one, 20 callers', shown: rate, size: 20_000, quick: 6_000, limit: true, bar: [] },
  { id: 'P2', what: 'start in bulk, 500 a call', shown: rate, size: 50_000, quick: 20_000, limit: true, bar: [] },
  { id: 'P6', what: 'drain one-step runs (P3 on SQLite)', shown: rate, size: 40_000, quick: 15_000, limit: true, bar: atLeast(0.8) },
  { id: 'P4', what: 'steps, many runs of 20', shown: rate, size: 40_000, quick: 10_000, limit: true, bar: [] },
  { id: 'P4b', what: 'steps, one run alone', shown: rate, size: 1_000, quick: 400, limit: true, bar: atLeast(0.75) },
  { id: 'P5', what: 'idle: start to body, start to result', shown: [{ of: 'p50', what: 'body p50', unit: 'ms' }, { of: 'p99', what: 'body p99', unit: 'ms' }, { of: 'result', what: 'result p50', unit: 'ms' }], size: 200, quick: 100, limit: true, bar: [{ of: 'result', value: 10 }] },
  { id: 'P9', what: 'hold runs that wait on I/O', shown: [{ of: 'kB', what: 'memory a run', unit: 'kB' }, { of: 'worst', what: 'longest gap of renewals', unit: 'ms' }], size: 10_000, quick: 10_000, limit: false, bar: [{ of: 'kB', value: 25 }, { of: 'worst', value: 11_000 }] },
  { id: 'P11', what: 'a run of 10,000 entries', shown: [{ of: 'early', what: 'a step near the start', unit: 'ms' }, { of: 'ratio', what: 'near the end, times that', unit: '' }, { of: 'resume', what: 'resumption', unit: 'ms' }], size: 10_000, quick: 10_000, limit: false, bar: [{ of: 'ratio', value: 1.1 }, { of: 'resume', value: 500 }] },
  { id: 'P12', what: 'kill -9 of an embedded process with 50 held runs', shown: [{ of: 'kill', what: 'kill to all driven again', unit: 'ms' }, { of: 'open', what: 'from its open', unit: 'ms' }], size: 5, quick: 3, limit: false, bar: [{ of: 'kill', value: 1_000 }] },
  { id: 'P14', what: 'memory over short runs', shown: [{ of: 'growth', what: 'last quarter over the third', unit: 'MB' }, { of: 'idle', what: 'resident, idle', unit: 'MB' }], size: 1_000_000, quick: 80_000, limit: false, bar: [{ of: 'growth', value: 5 }, { of: 'idle', value: 90 }] },
  { id: 'P15', what: 'start-up of the command', shown: [{ of: 'serve', what: 'dev to serving', unit: 'ms' }, { of: 'help', what: '--help', unit: 'ms' }], size: 7, quick: 3, limit: false, bar: [{ of: 'serve', value: 700 }, { of: 'help', value: 250 }] },
]

interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

const middle = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? Number.NaN

const spread = (values: readonly number[]): Spread => ({
  median: middle(values),
  min: Math.min(...values),
  max: Math.max(...values),
})

export interface Row {
  readonly id: string
  readonly what: string
  readonly unit: string
  readonly ours: Spread
  readonly limit: Spread | null
  /** Ours over the limit's, pair by pair. */
  readonly ratio: Spread | null
  readonly bar: string
  readonly met: boolean | null
}

export const rowsOf = (
  figure: Figure,
  pairs: readonly { readonly ours: Figures; readonly limit: Figures | null }[],
): Row[] =>
  figure.shown.map(({ of, what, unit }) => {
    const values = pairs.map(({ ours }) => ours[of] ?? Number.NaN)
    const limits = pairs.flatMap(({ limit }) => (limit ? [limit[of] ?? Number.NaN] : []))
    const ratio =
      limits.length === 0 ? null : spread(values.map((each, i) => each / (limits[i] ?? 1)))
    const ours = spread(values)
    const bar = figure.bar.find((each) => each.of === of)
    const measured = bar?.ratio === undefined ? ours.median : (ratio?.median ?? Number.NaN)
    const met = bar && (bar.ratio === 'least' ? measured >= bar.value : measured <= bar.value)
    return {
      id: figure.id,
      what: what === '' ? figure.what : `${figure.what}: ${what}`,
      unit,
      ours,
      limit: limits.length === 0 ? null : spread(limits),
      ratio,
      bar:
        bar === undefined
          ? ''
          : `${bar.ratio === 'least' ? '≥' : '≤'} ${bar.value}${bar.ratio ? ' ×' : ` ${unit}`}`.trim(),
      met: met ?? null,
    }
  })

const number = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toFixed(2)
const shown = ({ median, min, max }: Spread): string =>
  `${number(median)} (${number(min)}–${number(max)})`

export const table = (rows: readonly Row[]): string => {
  const lines = rows.map((row) => [
    row.id,
    row.what,
    `${shown(row.ours)} ${row.unit}`.trim(),
    row.limit ? `${shown(row.limit)} ${row.unit}`.trim() : '',
    row.ratio ? shown(row.ratio) : '',
    row.bar === '' ? '' : `${row.bar}${row.met === false ? ' **missed**' : ''}`,
  ])
  const head = ['', 'figure', 'ours', 'limit', 'ours ÷ limit', 'bar']
  const all = [head, head.map(() => '---'), ...lines]
  return all.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

const measure = (
  bundle: string,
  side: string,
  figure: string,
  size: number,
  parent: string,
): Figures => {
  const dir = mkdtempSync(path.join(parent, 'leasehold-bench-'))
  try {
    const args = ['--expose-gc', bundle, side, figure, String(size), dir]
    const done = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 24 })
    if (done.status !== 0) throw new Error(`${side} ${figure} failed:\n${done.stderr}`)
    return JSON.parse(done.stdout) as Figures
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      only: { type: 'string' },
      times: { type: 'string' },
      dir: { type: 'string', default: tmpdir() },
    },
  })
  const only = values.only?.split(',').map((id) => (id === 'P3' ? 'P6' : id))
  const stranger = only?.find((id) => !figures.some((figure) => figure.id === id))
  if (stranger !== undefined) throw new Error(`there is no figure ${stranger}`)
  const bundle = path.join(root, 'packages/engine/dist/bench/measure.js')
  await build({
    entryPoints: [path.join(root, 'packages/engine/bench/measure.ts')],
    outfile: bundle,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
  })
  const rows: Row[] = []
  for (const figure of figures) {
    if (only && !only.includes(figure.id)) continue
    const times = Number(
      values.times ?? (figure.limit ? (values.quick ? 3 : 5) : values.quick ? 1 : 3),
    )
    const size = values.quick ? figure.quick : figure.size
    const pairs: { ours: Figures; limit: Figures | null }[] = []
    try {
      for (let i = 0; i < times; i++) {
        const limit = figure.limit ? measure(bundle, 'limit', figure.id, size, values.dir) : null
        pairs.push({ ours: measure(bundle, 'ours', figure.id, size, values.dir), limit })
      }
    } catch (error) {
      console.error(`${figure.id} was not measured: ${(error as Error).message}`)
      process.exitCode = 1
      continue
    }
    rows.push(...rowsOf(figure, pairs))
    if (!values.json) console.error(`${figure.id} ${figure.what}: done`)
  }
  const sqlite = JSON.parse(
    readFileSync(path.join(root, 'node_modules/better-sqlite3/package.json'), 'utf8'),
  ) as { version: string }
  const settings = `Node ${process.versions.node}, better-sqlite3 ${sqlite.version}, ${cpus().length} cores; WAL, synchronous=FULL; 200 slots; ${values.quick ? 'quick sizes' : 'full sizes'}; median (least–most)`
  console.log(
    values.json ? JSON.stringify({ settings, rows }, null, 2) : `${table(rows)}\n\n${settings}`,
  )
}

if (isMain(import.meta.url)) await main()
