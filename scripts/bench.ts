// `npm run bench`: ours and the bare-SQL limit side by side, each measurement in a process of its own, taken in turn so
// that what else the machine does falls on both. `-- --quick`, `-- --json`, `-- --only P3,P4`, `-- --store postgres` (a
// server of its own, with syncs on), `-- --dir <folder>` for files elsewhere: a disk that syncs slowly flatters us, a
// memory disk shows what a run costs the processor. `-- --store postgres --peers` measures other engines beside it.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import pg from 'pg'
import { isMain, root } from './files.ts'
import type { Server } from './postgres.ts'
import { startPostgres } from './postgres.ts'

type Store = 'sqlite' | 'postgres'
type Figures = Readonly<Record<string, number>>

interface Figure {
  readonly id: string
  readonly what: string
  /** What of the answer is shown, with its unit. */
  readonly shown: readonly { readonly of: string; readonly what: string; readonly unit: string }[]
  readonly size: number
  readonly quick: number
  readonly limit: boolean
  /** How many other engines are given, where they are measured. */
  readonly peers?: number
  /** On which databases; by default on both. */
  readonly on?: Store
  /** The bar: ours ÷ limit at least or at most, or a figure of ours at most unless it says at least. */
  readonly bar: {
    readonly of: string
    readonly ratio?: 'least' | 'most'
    readonly at?: 'least'
    readonly value: number
    readonly on?: Store
  }[]
}

const rate = [{ of: 'rate', what: '', unit: '/s' }]
const atLeast = (value: number, on?: Store): Figure['bar'] => [
  { of: 'rate', ratio: 'least', value, ...(on ? { on } : {}) },
]

// prettier-ignore
export const figures: readonly Figure[] = [
  { id: 'P1', what: 'start one by one, 20 callers', shown: rate, size: 20_000, quick: 6_000, limit: true, peers: 4_000, bar: atLeast(0.8, 'postgres') },
  { id: 'P2', what: 'start in bulk, 500 a call', shown: rate, size: 50_000, quick: 20_000, limit: true, bar: atLeast(0.45, 'postgres') },
  { id: 'P3', what: 'drain one-step runs', on: 'postgres', shown: rate, size: 40_000, quick: 15_000, limit: true, peers: 2_000, bar: atLeast(0.8) },
  { id: 'P6', what: 'drain one-step runs', on: 'sqlite', shown: rate, size: 40_000, quick: 15_000, limit: true, bar: atLeast(0.8) },
  { id: 'P4', what: 'steps, many runs of 20', shown: rate, size: 40_000, quick: 10_000, limit: true, peers: 4_000, bar: atLeast(0.65, 'postgres') },
  { id: 'P4b', what: 'steps, one run alone', shown: rate, size: 1_000, quick: 400, limit: true, bar: atLeast(0.75) },
  { id: 'P5', what: 'idle: start to body, start to result', shown: [{ of: 'p50', what: 'body p50', unit: 'ms' }, { of: 'p99', what: 'body p99', unit: 'ms' }, { of: 'result', what: 'result p50', unit: 'ms' }], size: 200, quick: 100, limit: true, peers: 40, bar: [{ of: 'p50', ratio: 'most', value: 1.15, on: 'postgres' }, { of: 'result', value: 10 }] },
  { id: 'P7', what: 'ended runs that lie about', shown: [{ of: 'empty', what: 'drain of an empty store', unit: '/s' }, { of: 'grown', what: 'with them, times that', unit: '' }, { of: 'open', what: 'beside an open transaction, times that', unit: '' }, { of: 'blocked', what: 'behind 5,000 blocked runs, times that', unit: '' }, { of: 'emptyClaim', what: 'claim of 10, empty, p99', unit: 'ms' }, { of: 'claim', what: 'claim of 10, p99', unit: 'ms' }], size: 1_000_000, quick: 100_000, limit: false, bar: [{ of: 'grown', at: 'least', value: 0.9 }, { of: 'open', at: 'least', value: 0.9, on: 'postgres' }, { of: 'blocked', at: 'least', value: 0.9 }, { of: 'claim', value: 20 }] },
  { id: 'P8', what: 'lists among many ended runs, p95', shown: [{ of: 'page', what: 'a page', unit: 'ms' }, { of: 'workflow', what: 'of a workflow', unit: 'ms' }, { of: 'owner', what: 'of an owner', unit: 'ms' }, { of: 'failed', what: 'failed ones of a workflow', unit: 'ms' }, { of: 'text', what: 'a text among the failed', unit: 'ms' }, { of: 'counts', what: 'counts', unit: 'ms' }], size: 1_000_000, quick: 100_000, limit: false, bar: ['page', 'workflow', 'owner', 'failed', 'text', 'counts'].map((of) => ({ of, value: 200 })) },
  { id: 'P9', on: 'sqlite', what: 'hold runs that wait on I/O', shown: [{ of: 'kB', what: 'memory a run', unit: 'kB' }, { of: 'worst', what: 'longest gap of renewals', unit: 'ms' }], size: 10_000, quick: 10_000, limit: false, bar: [{ of: 'kB', value: 25 }, { of: 'worst', value: 11_000 }] },
  { id: 'P10', what: 'limits', shown: [{ of: 'owners', what: '100 owners at limit 10, times a drain without', unit: '' }, { of: 'rest', what: 'the rest beside 1 % at one key of limit 1, times that', unit: '' }, { of: 'over', what: 'most bodies above a limit', unit: '' }], size: 10_000, quick: 5_000, limit: false, bar: [{ of: 'owners', at: 'least', value: 0.8 }, { of: 'rest', at: 'least', value: 0.8 }, { of: 'over', value: 0 }] },
  { id: 'P10c', what: 'one key alone at limit 1', shown: rate, size: 2_000, quick: 500, limit: true, bar: atLeast(0.5) },
  { id: 'P11', what: 'a run of 10,000 entries', shown: [{ of: 'early', what: 'a step near the start', unit: 'ms' }, { of: 'ratio', what: 'near the end, times that', unit: '' }, { of: 'resume', what: 'resumption', unit: 'ms' }], size: 10_000, quick: 10_000, limit: false, bar: [{ of: 'ratio', value: 1.1 }, { of: 'resume', value: 500 }] },
  { id: 'P12', on: 'sqlite', what: 'kill -9 of an embedded process with 50 held runs', shown: [{ of: 'kill', what: 'kill to all driven again', unit: 'ms' }, { of: 'open', what: 'from its open', unit: 'ms' }], size: 5, quick: 3, limit: false, bar: [{ of: 'kill', value: 1_000 }] },
  { id: 'P13', what: 'twenty owners, one of whom floods', shown: [{ of: 'p50', what: 'a light owner waits, p50', unit: 'ms' }, { of: 'worst', what: 'at most', unit: 'ms' }, { of: 'jain', what: 'Jain index', unit: '' }], size: 10_000, quick: 10_000, limit: false, bar: [{ of: 'worst', value: 500 }, { of: 'jain', at: 'least', value: 0.99 }] },
  { id: 'P14', on: 'sqlite', what: 'memory over short runs', shown: [{ of: 'growth', what: 'last quarter over the third', unit: 'MB' }, { of: 'idle', what: 'resident, idle', unit: 'MB' }], size: 1_000_000, quick: 80_000, limit: false, bar: [{ of: 'growth', value: 5 }, { of: 'idle', value: 90 }] },
  { id: 'P15', on: 'sqlite', what: 'start-up of the command', shown: [{ of: 'serve', what: 'dev to serving', unit: 'ms' }, { of: 'help', what: '--help', unit: 'ms' }], size: 7, quick: 3, limit: false, bar: [{ of: 'serve', value: 700 }, { of: 'help', value: 250 }] },
  { id: 'P16', on: 'postgres', what: 'executors that hold 20 runs each', shown: [{ of: 'worst', what: 'longest gap of renewals', unit: 'ms' }, { of: 'late', what: 'renewals after their lease', unit: '' }, { of: 'core', what: 'the database, cores', unit: '' }], size: 1_000, quick: 200, limit: false, bar: [{ of: 'late', value: 0 }, { of: 'core', value: 0.2 }] },
  { id: 'relay', what: 'from a notice’s cause to its sink', shown: [{ of: 'p50', what: 'p50', unit: 'ms' }, { of: 'p99', what: 'p99', unit: 'ms' }, { of: 'rate', what: 'many at once', unit: '/s' }], size: 20_000, quick: 5_000, limit: false, bar: [{ of: 'p99', value: 1_000 }] },
  { id: 'killed', what: 'webhooks, the notifier killed every 2 s', shown: [{ of: 'again', what: 'sent again, of 100,000', unit: '' }, { of: 'over', what: 'keys sent more than 1 + kills times', unit: '' }, { of: 'most', what: 'most sends of one key', unit: '' }, { of: 'kills', what: 'kills', unit: '' }, { of: 'rate', what: 'notices', unit: '/s' }], size: 100_000, quick: 5_000, limit: false, bar: [{ of: 'over', value: 0 }] },
  { id: 'family', what: 'from a child’s end to its parent’s next step', shown: [{ of: 'on50', what: 'p50', unit: 'ms' }, { of: 'on99', what: 'p99', unit: 'ms' }, { of: 'off50', what: 'without wake-ups p50', unit: 'ms' }, { of: 'off99', what: 'without wake-ups p99', unit: 'ms' }], size: 500, quick: 200, limit: false, bar: [{ of: 'on99', value: 1_000 }, { of: 'off99', value: 3_000 }] },
  { id: 'stop', on: 'sqlite', what: 'SIGTERM, lease of an hour, beyond the grace of 500 ms', shown: [{ of: 'exit', what: 'exit p50', unit: 'ms' }, { of: 'exit99', what: 'exit p99', unit: 'ms' }, { of: 'elsewhere', what: 'body elsewhere p50', unit: 'ms' }, { of: 'elsewhere99', what: 'body elsewhere p99', unit: 'ms' }], size: 200, quick: 20, limit: false, bar: [{ of: 'exit99', value: 250 }, { of: 'elsewhere99', value: 2_000 }] },
  { id: 'alive', on: 'sqlite', what: 'minutes of ten executors, 30 % of their renewals lost', shown: [{ of: 'deaths', what: 'false deaths', unit: '' }, { of: 'renewals', what: 'renewals', unit: '' }, { of: 'lost', what: 'lost', unit: '' }, { of: 'hours', what: 'sessions', unit: 'h' }], size: 60, quick: 0.5, limit: false, bar: [{ of: 'deaths', value: 0 }] },
  { id: 'broken', on: 'sqlite', what: 'the same while the server is', shown: [...['gone', 'silent', 'cuts', '404', '500', '501'].map((of) => ({ of, what: of, unit: 'ms' })), { of: 'worst', what: 'worst', unit: 'ms' }], size: 10, quick: 2, limit: false, bar: [{ of: 'worst', value: 2_000 }] },
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
  store: Store = 'sqlite',
): Row[] =>
  figure.shown.flatMap(({ of, what, unit }) => {
    // what a store has no way to show is left out
    if (pairs.every(({ ours }) => ours[of] === undefined)) return []
    const values = pairs.map(({ ours }) => ours[of] ?? Number.NaN)
    const limits = pairs.flatMap(({ limit }) => (limit ? [limit[of] ?? Number.NaN] : []))
    const ratio =
      limits.length === 0 ? null : spread(values.map((each, i) => each / (limits[i] ?? 1)))
    const ours = spread(values)
    const bar = figure.bar.find((each) => each.of === of && (each.on ?? store) === store)
    const measured = bar?.ratio === undefined ? ours.median : (ratio?.median ?? Number.NaN)
    const least = bar?.ratio === 'least' || bar?.at === 'least'
    const met = bar && (least ? measured >= bar.value : measured <= bar.value)
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
          : `${least ? '≥' : '≤'} ${bar.value}${bar.ratio ? ' ×' : ` ${unit}`}`.trim(),
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

const peersFolder = path.join(root, 'packages/engine/bench/peers')
const peerNames = readdirSync(peersFolder)
  .filter((file) => file.endsWith('.mjs') && file !== 'measure.mjs')
  .map((file) => path.parse(file).name)

export interface Beside {
  readonly id: string
  readonly what: string
  readonly unit: string
  readonly ours: Spread
  /** By name; null where it has no such thing. */
  readonly peers: Readonly<Record<string, Spread | null>>
}

export const besideOf = (
  figure: Figure,
  ours: readonly Figures[],
  peers: Readonly<Record<string, readonly (Figures | null)[]>>,
): Beside[] =>
  figure.shown.map(({ of, what, unit }) => ({
    id: figure.id,
    what: what === '' ? figure.what : `${figure.what}: ${what}`,
    unit,
    ours: spread(ours.map((each) => each[of] ?? Number.NaN)),
    peers: Object.fromEntries(
      Object.entries(peers).map(([name, all]) => {
        const values = all.flatMap((each) => each?.[of] ?? [])
        return [name, values.length === 0 ? null : spread(values)]
      }),
    ),
  }))

export const besideTable = (rows: readonly Beside[], names: readonly string[]): string => {
  const cell = (row: Beside, of: Spread | null | undefined): string => {
    if (!of) return '–'
    const times = row.unit === '/s' ? row.ours.median / of.median : of.median / row.ours.median
    return `${shown(of)} ${row.unit}, ${times.toFixed(1)} ×`
  }
  const head = ['', 'figure', 'ours', ...names.map((name) => `${name}, we do better by`)]
  const lines = rows.map((row) => [
    row.id,
    row.what,
    `${shown(row.ours)} ${row.unit}`,
    ...names.map((name) => cell(row, row.peers[name])),
  ])
  return [head, head.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

/** Measures another engine once; null where it has no such thing. */
const measurePeer = async (
  name: string,
  { id }: Figure,
  size: number,
  server: Server,
): Promise<Figures | null> => {
  const url = await freshDatabase(server, 'bench')
  const args = [path.join(peersFolder, 'measure.mjs'), name, id, String(size), url]
  const done = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 24 })
  if (done.status !== 0) throw new Error(`${name} ${id} failed:\n${done.stderr}`)
  return JSON.parse(done.stdout.trim().split('\n').at(-1) ?? '') as Figures | null
}

/** Measures once, in a folder or a database that is there for it alone. */
const measure = async (
  bundle: string,
  side: string,
  { id, limit }: Figure,
  size: number,
  { dir, server }: { readonly dir: string; readonly server: Server | null },
): Promise<Figures> => {
  const made: string[] = []
  const place = async (name: string): Promise<string> => {
    if (server) return freshDatabase(server, name)
    const folder = mkdtempSync(path.join(dir, 'leasehold-bench-'))
    made.push(folder)
    return folder
  }
  try {
    // what is held against a limit is measured warm; start-up and recovery are what they are
    const places = [await place('bench'), ...(limit ? [await place('bench_warm')] : [])]
    const args = ['--expose-gc', bundle, side, id, String(size), ...places]
    const done = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 24 })
    if (done.status !== 0) throw new Error(`${side} ${id} failed:\n${done.stderr}`)
    return JSON.parse(done.stdout) as Figures
  } finally {
    for (const folder of made) rmSync(folder, { recursive: true, force: true })
  }
}

/** The one before is dropped, and what was written of it is on disk before the clock runs. */
const freshDatabase = async ({ url }: Server, name: string): Promise<string> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`drop database if exists ${name}`)
  await client.query(`create database ${name}`)
  await client.query('checkpoint')
  await client.end()
  return url.replace(/\w+$/, name)
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      only: { type: 'string' },
      times: { type: 'string' },
      dir: { type: 'string', default: tmpdir() },
      store: { type: 'string', default: 'sqlite' },
      peers: { type: 'boolean', default: false },
    },
  })
  if (values.peers && values.store !== 'postgres')
    throw new Error('other engines are measured on PostgreSQL: `--store postgres --peers`')
  if (values.peers && !existsSync(path.join(peersFolder, 'node_modules')))
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: peersFolder, stdio: 'inherit' })
  if (values.store !== 'sqlite' && values.store !== 'postgres')
    throw new Error(`there is no store ${values.store}; sqlite or postgres`)
  const { store } = values
  const server =
    store === 'postgres'
      ? await startPostgres({
          durable: true,
          settings: { shared_buffers: '512MB', max_wal_size: '4GB', checkpoint_timeout: '30min' },
        })
      : null
  const where = { dir: values.dir, server }
  const only = values.only?.split(',').map((id) => (id === 'P3' && store === 'sqlite' ? 'P6' : id))
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
  const beside: Beside[] = []
  for (const figure of figures) {
    if (values.peers && figure.peers === undefined) continue
    if ((only && !only.includes(figure.id)) || (figure.on ?? store) !== store) continue
    const times = Number(
      values.times ?? (figure.limit ? (values.quick ? 3 : 5) : values.quick ? 1 : 3),
    )
    const size = values.quick ? figure.quick : figure.size
    const pairs: { ours: Figures; limit: Figures | null }[] = []
    try {
      for (let i = 0; i < times; i++) {
        const limit = figure.limit ? await measure(bundle, 'limit', figure, size, where) : null
        pairs.push({ ours: await measure(bundle, 'ours', figure, size, where), limit })
      }
    } catch (error) {
      console.error(`${figure.id} was not measured: ${(error as Error).message}`)
      process.exitCode = 1
      continue
    }
    rows.push(...rowsOf(figure, pairs, store))
    if (values.peers && server && figure.peers !== undefined) {
      const peers: Record<string, (Figures | null)[]> = {}
      for (let i = 0; i < times; i++)
        for (const name of peerNames)
          (peers[name] ??= []).push(await measurePeer(name, figure, figure.peers, server))
      beside.push(
        ...besideOf(
          figure,
          pairs.map(({ ours }) => ours),
          peers,
        ),
      )
    }
    if (!values.json) console.error(`${figure.id} ${figure.what}: done`)
  }
  await server?.stop()
  const version = (name: string): string =>
    (
      JSON.parse(readFileSync(path.join(root, 'node_modules', name, 'package.json'), 'utf8')) as {
        version: string
      }
    ).version
  const database = server
    ? `PostgreSQL ${server.version}, pg ${version('pg')}, on the same machine; fsync and synchronous_commit on`
    : `better-sqlite3 ${version('better-sqlite3')}; WAL, synchronous=FULL`
  const settings = `Node ${process.versions.node}, ${database}; ${cpus().length} cores; 200 slots; ${values.quick ? 'quick sizes' : 'full sizes'}; median (least–most)`
  console.log(
    values.json
      ? JSON.stringify({ settings, rows, beside }, null, 2)
      : [table(rows), ...(values.peers ? [besideTable(beside, peerNames)] : []), settings].join(
          '\n\n',
        ),
  )
}

if (isMain(import.meta.url)) await main()
