// The configuration: a flag beats the environment, which beats the file, which beats the default. Everything is checked
// before anything starts, and all faults are told at once, each with where its value came from.
import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import path from 'node:path'
import * as z from 'zod'
import { milliseconds } from '../kernel/duration.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Level } from '../kernel/log.ts'
import { isName, NAME_EXPECTED } from '../model/definition.ts'
import type { Settings } from '../model/settings.ts'
import { defaults, settingsFaults } from '../model/settings.ts'
import type { SinkConfig } from '../model/sinks.ts'
import { SHARDS_MAX } from '../model/shard.ts'
import type { StoresAt } from '../model/store-at.ts'
import { readSinks } from './sinks.ts'

export interface Config {
  /** The SQLite file that `serve`, `migrate` and `doctor --after-restore` open, where no database is named. */
  readonly file: string
  /** The PostgreSQL database that they open instead. */
  readonly database: string | null
  /** Where to listen for wake-ups, when `database` leads through a pooler that gives each transaction another connection. */
  readonly databaseListen: string | null
  /** Databases that are joined as one store, in their order; none where there is one store. */
  readonly databases: readonly string[]
  readonly databaseConnections: number
  /** How long a migration waits for a table that another transaction uses. */
  readonly databaseMigrationLockMs: number
  readonly databaseSchema: string
  /** Where clients and executors find the server. */
  readonly url: string
  /** How executors reach it. */
  readonly via: 'http' | 'websocket'
  readonly host: string
  readonly port: number
  readonly logLevel: Level
  /** Who acts, in the record of what was done. */
  readonly actor: string
  readonly token: string | null
  readonly operatorToken: string | null
  readonly viewerToken: string | null
  readonly executorToken: string | null
  /** What lets `leasehold attempt` drive one attempt. */
  readonly attemptToken: string | null
  /** What senders of deliveries sign with, by the names that triggers have for it. */
  readonly hookSecrets: Readonly<Record<string, string>>
  readonly slots: number
  readonly queues: readonly string[]
  readonly labels: readonly string[]
  /** Names of variables of the environment whose values are taken out of logs. */
  readonly redact: readonly string[]
  readonly build: string
  readonly drainMs: number
  readonly abortGraceMs: number
  /** Where an executor keeps the files of preparations. */
  readonly scratch: string
  /** A pod template: workflows with the isolation `job` are driven by pods made from it. Null where none are. */
  readonly jobTemplate: string | null
  /** How long such a pod may take to begin. */
  readonly jobStartByMs: number
  /** The API of the cluster in which they are made; null for the one in which this process is a pod. */
  readonly cluster: string | null
  readonly clusterNamespace: string | null
  readonly clusterToken: string | null
  /** When the supervisor kills an executor after its signal; null where nobody has said. */
  readonly killLimitMs: number | null
  readonly settings: Settings
  /** Where a server sends notices. */
  readonly sinks: readonly SinkConfig[]
}

type Name = Exclude<keyof Config, 'settings' | 'sinks'>

interface Item {
  readonly schema: z.ZodType
  readonly expected: string
  readonly fallback: unknown
  readonly secret?: true
}

const text = z.string().min(1)
const aPath = text.refine((path) => !path.includes('\0'), 'holds a NUL character')
const whole = z.coerce.number().int().min(0)
const list = z.union([
  z.array(text),
  z.string().transform((all) => all.split(',').flatMap((each) => each.trim() || [])),
])
const duration = z.union([z.number(), z.string()]).transform((given, context) => {
  try {
    return milliseconds(/^\d+$/.test(String(given)) ? Number(given) : given)
  } catch {
    context.addIssue({ code: 'custom', message: 'is no duration' })
    return z.NEVER
  }
})
const aDuration = 'a duration such as 25s, or milliseconds'
const secret = {
  schema: text,
  expected: 'a text that is not empty',
  fallback: null,
  secret: true,
} as const

const hookSecrets = z.record(z.string().min(1).max(200), text)
const asJson = (given: string, context: z.RefinementCtx): unknown => {
  try {
    return JSON.parse(given) as unknown
  } catch {
    context.addIssue({ code: 'custom', message: 'is not JSON' })
    return z.NEVER
  }
}

const postgres = {
  schema: z.url({ protocol: /^postgres(ql)?$/ }),
  expected: 'a URL such as postgres://user@host/database',
  fallback: null,
  // it may carry a password
  secret: true,
} as const

const items: Readonly<Record<Name, Item>> = {
  file: { schema: aPath, expected: 'a path', fallback: '.leasehold/leasehold.db' },
  database: postgres,
  databaseListen: postgres,
  databases: {
    schema: list.pipe(
      z
        .array(postgres.schema)
        .max(SHARDS_MAX)
        .refine((all) => all.length !== 1)
        .refine((all) => new Set(all).size === all.length),
    ),
    expected:
      'two or more URLs such as postgres://user@host/database, each once, separated by commas',
    fallback: [],
    secret: true,
  },
  databaseConnections: {
    schema: z.coerce.number().int().min(1),
    expected: 'a whole number of 1 or more',
    fallback: 10,
  },
  databaseMigrationLockMs: {
    schema: duration.pipe(z.number().int().min(1)),
    expected: 'a duration such as 5s of 1 ms or more, or milliseconds',
    fallback: 5_000,
  },
  databaseSchema: {
    schema: text.regex(/^[a-z_][a-z0-9_]{0,52}$/),
    expected: '1 to 53 small letters, digits and underscores',
    fallback: 'public',
  },
  url: {
    schema: z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, '')),
    expected: 'an address such as http://127.0.0.1:7400',
    fallback: null,
  },
  via: {
    schema: z.enum(['http', 'websocket']),
    expected: 'http or websocket',
    fallback: 'http',
  },
  host: { schema: text, expected: 'a host name or address', fallback: '127.0.0.1' },
  port: {
    schema: z.coerce.number().int().min(0).max(65_535),
    expected: 'a whole number from 0 to 65535',
    fallback: 7400,
  },
  logLevel: {
    schema: z.enum(['debug', 'info', 'warn', 'error']),
    expected: 'debug, info, warn or error',
    fallback: 'info',
  },
  actor: {
    schema: text.refine(isName),
    expected: `a name of ${NAME_EXPECTED}`,
    fallback: null,
  },
  token: secret,
  operatorToken: secret,
  viewerToken: secret,
  executorToken: secret,
  attemptToken: secret,
  hookSecrets: {
    schema: z.union([hookSecrets, z.string().transform(asJson).pipe(hookSecrets)]),
    expected: 'an object of names and secrets that are not empty, in a variable as JSON',
    fallback: {},
    secret: true,
  },
  slots: { schema: whole.min(1), expected: 'a whole number of 1 or more', fallback: 10 },
  queues: { schema: list, expected: 'names, separated by commas', fallback: [] },
  labels: { schema: list, expected: 'names, separated by commas', fallback: [] },
  redact: { schema: list, expected: 'names, separated by commas', fallback: [] },
  build: { schema: text, expected: 'a text', fallback: 'unknown' },
  drainMs: { schema: duration, expected: aDuration, fallback: 25_000 },
  abortGraceMs: { schema: duration, expected: aDuration, fallback: 2_000 },
  scratch: { schema: aPath, expected: 'a path', fallback: '.leasehold/scratch' },
  jobTemplate: { schema: aPath, expected: 'a path', fallback: null },
  jobStartByMs: {
    schema: duration.pipe(z.number().int().min(1)),
    expected: 'a duration such as 5m of 1 ms or more, or milliseconds',
    fallback: 300_000,
  },
  cluster: {
    schema: z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, '')),
    expected: 'an address such as http://127.0.0.1:8001',
    fallback: null,
  },
  clusterNamespace: { schema: text, expected: 'the name of a namespace', fallback: null },
  clusterToken: secret,
  killLimitMs: { schema: duration, expected: aDuration, fallback: null },
}

const setting = (name: keyof Settings): Item => ({
  schema: name.endsWith('Ms') ? duration : z.coerce.number().min(0),
  expected: name.endsWith('Ms') ? aDuration : 'a number of 0 or more',
  fallback: defaults[name],
})

/** The store that the configuration names, or the databases that are joined as one. */
export const storeOf = ({
  file,
  database,
  databases,
  databaseListen: listen,
  databaseConnections: connections,
  databaseMigrationLockMs: migrationLockMs,
  databaseSchema: schema,
}: Config): StoresAt => {
  const common = { connections, migrationLockMs, schema }
  if (databases.length > 0) return databases.map((each) => ({ database: each, ...common }))
  return database === null ? { file } : { database, listen, ...common }
}

export interface Value {
  readonly name: string
  readonly value: unknown
  readonly origin: string
  readonly secret: boolean
}

export interface Sources {
  readonly flags: Readonly<Record<string, unknown>>
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

export interface Loaded {
  readonly config: Config
  /** Each value with where it came from. */
  readonly values: readonly Value[]
}

export const CONFIG_FILE = 'leasehold.config.json'

/** `drainMs` is read from LEASEHOLD_DRAIN_MS. */
export const envName = (name: string): string =>
  `LEASEHOLD_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`

/**
 * Reads all sources; throws `invalid_config` with every fault in its detail. What only a server needs, and whose secrets it
 * alone is given, is read where it `serves`.
 */
export const loadConfig = (
  sources: Sources,
  { serves = false }: { readonly serves?: boolean } = {},
): Loaded => {
  const faults: string[] = []
  const found = readConfigFile(sources, faults)
  const values = new Map<string, Value>()
  const take = (name: string, shown: string, item: Item, inFile: unknown): void => {
    const given = givenFor(name, item, sources, inFile, found?.path, faults)
    if (given === undefined) {
      values.set(name, {
        name: shown,
        value: item.fallback,
        origin: 'default',
        secret: item.secret === true,
      })
      return
    }
    const read = item.schema.safeParse(given.value)
    if (!read.success)
      faults.push(
        `${shown} is ${item.secret ? 'not usable' : JSON.stringify(given.value)} (${given.origin}); expected ${item.expected}`,
      )
    values.set(name, {
      name: shown,
      value: read.success ? read.data : item.fallback,
      origin: given.origin,
      secret: item.secret === true,
    })
  }
  const { settings: nested = {}, sinks: named, ...flat } = found?.content ?? {}
  for (const [name, item] of Object.entries(items)) take(name, name, item, flat[name])
  const inSettings = isObject(nested) ? nested : {}
  if (!isObject(nested))
    faults.push(`settings is ${JSON.stringify(nested)} (${found?.path}); expected an object`)
  for (const name of Object.keys(defaults) as (keyof Settings)[])
    take(name, `settings.${name}`, setting(name), inSettings[name])
  for (const name of Object.keys(flat))
    if (!Object.hasOwn(items, name))
      faults.push(`${name} is not a setting (${found?.path}); ${known(name, Object.keys(items))}`)
  for (const name of Object.keys(inSettings))
    if (!Object.hasOwn(defaults, name))
      faults.push(
        `settings.${name} is not a setting (${found?.path}); ${known(name, Object.keys(defaults))}`,
      )
  const { sinks, values: ofSinks } = readSinks(
    serves ? named : undefined,
    { ...sources, file: found?.path },
    faults,
  )
  for (const each of ofSinks) values.set(each.name, { ...each, secret: false })
  faults.push(...byFile(values))
  fillIn(values, sources, found?.path)
  const of = (name: string): unknown => values.get(name)?.value
  const settings = Object.fromEntries(
    Object.keys(defaults).map((name) => [name, of(name)]),
  ) as unknown as Settings
  faults.push(...settingsFaults(settings), ...storeFaults(of))
  if (faults.length > 0) throw new LeaseholdError('invalid_config', faults.join('; '), { faults })
  const flatValues = Object.fromEntries(Object.keys(items).map((name) => [name, of(name)]))
  return {
    config: { ...flatValues, settings, sinks } as unknown as Config,
    values: [...values.values()],
  }
}

/** A file that a flag names beats the databases of the environment and of the configuration file, and none that a flag names. */
const byFile = (values: Map<string, Value>): string[] => {
  const isFlag = (name: string): boolean => values.get(name)?.origin.startsWith('flag ') === true
  if (!isFlag('file')) return []
  return (['database', 'databases'] as const).flatMap((name) => {
    const value = values.get(name)
    if (isFlag(name)) return [`file and ${name} are both given by flags; keep one of them`]
    if (value && value.origin !== 'default')
      values.set(name, {
        ...value,
        value: name === 'database' ? null : [],
        origin: `${value.origin}, beaten by flag --file`,
      })
    return []
  })
}

/** Several databases stand in place of one, and each is listened to where it is. */
const storeFaults = (of: (name: string) => unknown): string[] => {
  const several = (of('databases') as readonly string[]).length > 0
  return (['database', 'databaseListen'] as const)
    .filter((name) => several && of(name) !== null)
    .map(
      (name) =>
        `${name} and databases are both set; ${name === 'database' ? 'keep one of them' : 'listening elsewhere is for one database'}`,
    )
}

/** Variables that processes of ours give to those that they start. */
const HANDED_ON = ['LEASEHOLD_RUN', 'LEASEHOLD_ATTEMPT', 'LEASEHOLD_SESSION']

/** A sentence for each variable that has our name and is no setting: it is mistyped, or of another version. */
export const unknownVariables = ({ env }: Pick<Sources, 'env'>): string[] => {
  const names = [...Object.keys(items), ...Object.keys(defaults)]
  const ours = new Set([
    'LEASEHOLD_CONFIG',
    ...HANDED_ON,
    ...names.map(envName),
    ...Object.entries(items).flatMap(([name, { secret }]) =>
      secret ? [`${envName(name)}_FILE`] : [],
    ),
  ])
  return Object.keys(env)
    .filter((name) => name.startsWith('LEASEHOLD_') && !ours.has(name))
    .filter((name) => !OF_OTHERS.test(name))
    .map((name) => {
      const near = names.find((each) => letters(envName(each)) === letters(name))
      return `${name} is not a setting (environment); ${near === undefined ? '`leasehold config` lists those that there are' : `did you mean ${envName(near)}?`}`
    })
}

/** Of sinks, by names that the file has, and what Kubernetes sets beside a Service named leasehold. */
const OF_OTHERS = /^LEASEHOLD_(SINK_|SERVICE_|PORT_\d)/
const letters = (name: string): string => name.replace(/_/g, '')

/** Values that follow from others, and paths, which mean the folder of the file that they stand in. */
const fillIn = (values: Map<string, Value>, { cwd }: Sources, file: string | undefined): void => {
  const put = (name: string, value: unknown, origin?: string): void => {
    const old = values.get(name)
    if (old) values.set(name, { ...old, value, origin: origin ?? old.origin })
  }
  const store = values.get('file')
  const from = store?.origin.startsWith('file ') && file !== undefined ? path.dirname(file) : cwd
  if (store) put('file', path.resolve(from, String(store.value)))
  const host = String(values.get('host')?.value)
  const shown =
    host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  if (values.get('url')?.value === null)
    put('url', `http://${shown}:${String(values.get('port')?.value)}`, 'default, of host and port')
  if (values.get('actor')?.value === null) put('actor', userName(), 'default, of this user')
}

const userName = (): string => {
  try {
    return userInfo().username
  } catch {
    return 'cli'
  }
}

const givenFor = (
  name: string,
  item: Item,
  { flags, env, cwd }: Sources,
  inFile: unknown,
  file: string | undefined,
  faults: string[],
): { value: unknown; origin: string } | undefined => {
  if (flags[name] !== undefined) return { value: flags[name], origin: `flag --${kebab(name)}` }
  const key = envName(name)
  // Kubernetes sets LEASEHOLD_PORT=tcp://… in every pod beside a Service named leasehold: that is not meant for us
  const direct = env[key]?.startsWith('tcp://') === true && name === 'port' ? undefined : env[key]
  if (direct !== undefined && direct !== '') return { value: direct, origin: `environment ${key}` }
  const pointer = item.secret ? env[`${key}_FILE`] : undefined
  if (pointer !== undefined && pointer !== '') {
    const origin = `environment ${key}_FILE`
    try {
      return { value: readFileSync(path.resolve(cwd, pointer), 'utf8').trim(), origin }
    } catch (error) {
      faults.push(`${name} cannot be read from ${pointer} (${origin}): ${(error as Error).message}`)
      return undefined
    }
  }
  return inFile === undefined ? undefined : { value: inFile, origin: `file ${file}` }
}

const kebab = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The named file, or the nearest one upwards; undefined where there is none. */
const readConfigFile = (
  { flags, env, cwd }: Sources,
  faults: string[],
): { path: string; content: Record<string, unknown> } | undefined => {
  const named = flags['config'] ?? env['LEASEHOLD_CONFIG']
  const places = typeof named === 'string' ? [path.resolve(cwd, named)] : upwards(cwd)
  for (const place of places) {
    let content: string
    try {
      content = readFileSync(place, 'utf8')
    } catch (error) {
      if (named !== undefined || (error as NodeJS.ErrnoException).code !== 'ENOENT') {
        faults.push(`the configuration file ${place} cannot be read: ${(error as Error).message}`)
        return undefined
      }
      continue
    }
    try {
      const parsed = JSON.parse(content) as unknown
      if (isObject(parsed)) return { path: place, content: parsed }
      faults.push(`the configuration file ${place} holds no object`)
    } catch (error) {
      faults.push(`the configuration file ${place} is not JSON: ${(error as Error).message}`)
    }
    return undefined
  }
  return undefined
}

const upwards = (cwd: string): string[] => {
  const places: string[] = []
  for (let folder = cwd; ; folder = path.dirname(folder)) {
    places.push(path.join(folder, CONFIG_FILE))
    if (path.dirname(folder) === folder) return places
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const known = (name: string, names: readonly string[]): string => {
  const near = names.find(
    (each) => each.toLowerCase() === name.toLowerCase().replace(/[^a-z]/g, ''),
  )
  return near === undefined ? `known are ${names.join(', ')}` : `did you mean ${near}?`
}
