// All processes of a torture, each behind links of its own to the database and to its server, with settings that are short
// enough for much to happen.
import path from 'node:path'
import { envName } from '../../src/cli/config/sources.ts'
import type { Settings } from '../../src/model/settings.ts'
import type { Proxy } from '../support/proxy.ts'
import { openProxy } from '../support/proxy.ts'
import { Program } from './fleet.ts'
import type { Place } from './place.ts'

/** Losses and hand-backs that a run could end by do not end it, since it is the nemesis who makes them. */
export const SETTINGS = {
  leaseMs: 3_000,
  renewMs: 1_000,
  sweepMs: 500,
  pollMs: 500,
  limitGraceMs: 2_000,
  cancelGraceMs: 4_000,
  lossesMax: 1_000,
  handBacksMax: 1_000,
  handBackDelayMs: 200,
  handBackDelayMaxMs: 1_000,
  ownerLimit: 4,
} as const satisfies Partial<Settings>

interface Heard {
  readonly onEvent: (level: string, event: string, program: string, line: string) => void
  readonly onDeath: (program: string, how: string, said: string) => void
}

export interface Mustered {
  readonly programs: readonly Program[]
  readonly servers: readonly Program[]
  /** Those that drive runs. */
  readonly drivers: readonly Program[]
  readonly databaseLinks: readonly Proxy[]
  readonly serverLinks: readonly Proxy[]
  /** Of the servers, through their links. */
  readonly urls: readonly string[]
  /** What any process of the package is started with. */
  readonly env: Readonly<Record<string, string>>
  /** Writes of stale attempts that were refused over HTTP so far. */
  readonly refused: number
  close(): Promise<void>
}

/** Nothing is started yet. */
export const muster = async (
  place: Place,
  counts: { readonly servers: number; readonly executors: number },
  heard: Heard,
): Promise<Mustered> => {
  const env: Record<string, string> = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    TORTURE_EFFECTS: place.effects,
    LEASEHOLD_DATABASE_CONNECTIONS: '6',
    LEASEHOLD_DRAIN_MS: '3s',
    LEASEHOLD_ABORT_GRACE_MS: '500ms',
    LEASEHOLD_SLOTS: '6',
  }
  for (const [name, value] of Object.entries(SETTINGS)) env[envName(name)] = String(value)
  const common = { cwd: place.folder, ...heard }
  const places = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

  let refused = 0
  const databaseLinks = await Promise.all(
    places(counts.servers + 1).map(() => openProxy(place.postgres.port)),
  )
  // where a server listens is known once it does
  const serverLinks = await Promise.all(places(counts.servers).map(() => openProxy(1)))
  for (const each of serverLinks)
    each.answered = (data) => {
      refused += data.toString('latin1').split('"code":"stale_attempt"').length - 1
    }
  const urls = serverLinks.map(({ port }) => `http://127.0.0.1:${port}`)
  const databaseOf = (i: number): string => {
    const url = new URL(place.url)
    url.port = String(databaseLinks[i]?.port)
    return url.href
  }

  const servers = serverLinks.map(
    (link, i) =>
      new Program({
        ...common,
        name: `server-${i + 1}`,
        role: 'server',
        args: [place.main, 'serve', '--port', '0'],
        env: { ...env, LEASEHOLD_DATABASE: databaseOf(i) },
        ready: ' at http',
        onReady: (line) => (link.to = Number(line.split(':').at(-1))),
      }),
  )
  const executors = places(counts.executors).map(
    (i) =>
      new Program({
        ...common,
        name: `executor-${i + 1}`,
        role: 'executor',
        args: [place.main, 'work', path.join(place.folder, 'workflows.js')],
        env: {
          ...env,
          LEASEHOLD_URL: urls[i % urls.length] ?? '',
          LEASEHOLD_LABELS: `executor-${i + 1}`,
        },
        ready: ' works at ',
      }),
  )
  const embedded = new Program({
    ...common,
    name: 'embedded-1',
    role: 'embedded',
    args: [path.join(place.folder, 'embedded.js')],
    env: {
      ...env,
      TORTURE_DATABASE: databaseOf(counts.servers),
      TORTURE_SETTINGS: JSON.stringify(SETTINGS),
      TORTURE_LABEL: 'embedded-1',
    },
    ready: 'the engine is embedded',
  })
  const drivers = [...executors, embedded]
  return {
    programs: [...servers, ...drivers],
    servers,
    drivers,
    databaseLinks,
    serverLinks,
    urls,
    env,
    get refused() {
      return refused
    },
    async close() {
      await Promise.all([...databaseLinks, ...serverLinks].map((link) => link.close()))
    },
  }
}
