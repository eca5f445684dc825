// Where the configuration is read from, and which of these has a value: a flag beats the environment, which beats the file.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Item } from './config.ts'

export interface Sources {
  readonly flags: Readonly<Record<string, unknown>>
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

/** `drainMs` is read from LEASEHOLD_DRAIN_MS. */
export const envName = (name: string): string =>
  `LEASEHOLD_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`

/** What a name is given by, with where that stood; undefined where nobody gives it. */
export const givenFor = (
  name: string,
  item: Item,
  { flags, env, cwd }: Sources,
  inFile: unknown,
  file: string | undefined,
  faults: string[],
): { value: unknown; origin: string } | undefined => {
  if (flags[name] !== undefined) return { value: flags[name], origin: `flag --${flagName(name)}` }
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

/** `drainMs` is the flag --drain-ms. */
export const flagName = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
