// The configuration: a flag beats the environment, which beats the file, which beats the default. Everything is checked
// before anything starts, and all faults are told at once, each with where its value came from.
import { userInfo } from 'node:os'
import path from 'node:path'
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Settings } from '../../model/settings.ts'
import { defaults, settingsFaults } from '../../model/settings.ts'
import type { Config, Item } from './config.ts'
import { items, setting } from './config.ts'
import { isObject, readConfigFile } from './config-file.ts'
import { readSinks } from './sinks.ts'
import type { Sources } from './sources.ts'
import { givenFor } from './sources.ts'

export interface Value {
  readonly name: string
  readonly value: unknown
  readonly origin: string
  readonly secret: boolean
}

export interface Loaded {
  readonly config: Config
  /** Each value with where it came from. */
  readonly values: readonly Value[]
}

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
    put(
      'url',
      `http://${shown}:${String(values.get('port')?.value)}`,
      `default, ${items.url.otherwise}`,
    )
  if (values.get('actor')?.value === null)
    put('actor', userName(), `default, ${items.actor.otherwise}`)
}

const userName = (): string => {
  try {
    return userInfo().username
  } catch {
    return 'cli'
  }
}

const known = (name: string, names: readonly string[]): string => {
  const near = names.find(
    (each) => each.toLowerCase() === name.toLowerCase().replace(/[^a-z]/g, ''),
  )
  return near === undefined ? `known are ${names.join(', ')}` : `did you mean ${near}?`
}
