// What can be configured: each thing with what it may be and what it is where nobody says otherwise.
import * as z from 'zod'
import { milliseconds } from '../../kernel/duration.ts'
import type { Level } from '../../kernel/log.ts'
import { isName, NAME_EXPECTED } from '../../model/definition.ts'
import type { Settings } from '../../model/settings.ts'
import { defaults } from '../../model/settings.ts'
import type { SinkConfig } from '../../model/sinks.ts'
import { SHARDS_MAX } from '../../model/shard.ts'

export interface Config {
  /** The SQLite file that `serve`, `migrate` and `doctor --after-restore` open, where no database is named. */
  readonly file: string
  /** The PostgreSQL database that they open instead of a file. */
  readonly database: string | null
  /** Where to listen for wake-ups, when `database` leads through a pooler that gives each transaction another connection. */
  readonly databaseListen: string | null
  /** Databases that are joined as one store, in their order; none where there is one store. */
  readonly databases: readonly string[]
  /** Connections of a server at most, one of them for renewals where there are two or more; one more listens. */
  readonly databaseConnections: number
  /** How long a migration waits for a table that another transaction uses. */
  readonly databaseMigrationLockMs: number
  /** The schema of the database in which the tables are. */
  readonly databaseSchema: string
  /** Where clients and executors find the server. */
  readonly url: string
  /** How executors reach the server. */
  readonly via: 'http' | 'websocket'
  /** Where a server listens. An address that other machines reach needs a token. */
  readonly host: string
  /** The port on which a server listens; 0 takes a free one. */
  readonly port: number
  /** The least that a process says in its log. */
  readonly logLevel: Level
  /** Who acts, in the record of what was done. */
  readonly actor: string
  /** With it a server lets anybody do anything; the first that clients and executors show. */
  readonly token: string | null
  /** With it a server lets operators in; what clients show who have no `token`. */
  readonly operatorToken: string | null
  /** With it a server lets in who only reads; what clients show who have neither of these. */
  readonly viewerToken: string | null
  /** With it a server lets executors in; what executors show that have no `token`. */
  readonly executorToken: string | null
  /** What lets `leasehold attempt` drive one attempt. */
  readonly attemptToken: string | null
  /** What senders of deliveries sign with, by the names that triggers have for it. */
  readonly hookSecrets: Readonly<Record<string, string>>
  /** Runs that an executor drives at once. */
  readonly slots: number
  /** Queues that an executor claims from; where none is named, each workflow's own. */
  readonly queues: readonly string[]
  /** Labels that an executor has. */
  readonly labels: readonly string[]
  /** Names of variables of the environment whose values are taken out of logs. */
  readonly redact: readonly string[]
  /** What an executor shows as its build. */
  readonly build: string
  /** How long steps may finish when an executor is told to stop. */
  readonly drainMs: number
  /** How long those that are aborted after that may take to end. */
  readonly abortGraceMs: number
  /** Where an executor keeps the files of preparations. */
  readonly scratch: string
  /** A pod template: workflows with the isolation `job` are driven by pods made from it. */
  readonly jobTemplate: string | null
  /** How long such a pod may take to begin. */
  readonly jobStartByMs: number
  /** The API of the cluster in which such pods are made; null for the one in which this process is a pod. */
  readonly cluster: string | null
  /** The namespace of such pods; null for this pod's own, or `default` where `cluster` is given. */
  readonly clusterNamespace: string | null
  /** What is shown to the API that `cluster` names. */
  readonly clusterToken: string | null
  /** When the supervisor kills an executor after its signal; null where nobody has said. */
  readonly killLimitMs: number | null
  readonly settings: Settings
  /** Where a server sends notices. */
  readonly sinks: readonly SinkConfig[]
}

type Name = Exclude<keyof Config, 'settings' | 'sinks'>

/** What one thing of the configuration may be. */
export interface Item {
  readonly schema: z.ZodType
  readonly expected: string
  readonly fallback: unknown
  /** What the value is made from where there is no fallback. */
  readonly otherwise?: string
  /** It is never shown, and may stand in a file of its own. */
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

/** All that can be configured beside the numbers of the engine and the sinks. */
export const items: Readonly<Record<Name, Item>> = {
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
    otherwise: 'of host and port',
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
    otherwise: 'of this user',
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
    otherwise: 'that of this pod',
  },
  clusterNamespace: {
    schema: text,
    expected: 'the name of a namespace',
    fallback: null,
    otherwise: 'that of this pod',
  },
  clusterToken: secret,
  killLimitMs: { schema: duration, expected: aDuration, fallback: null },
}

/** What a number of the engine may be. */
export const setting = (name: keyof Settings): Item => ({
  schema: name.endsWith('Ms') ? duration : z.coerce.number().min(0),
  expected: name.endsWith('Ms') ? aDuration : 'a number of 0 or more',
  fallback: defaults[name],
})
