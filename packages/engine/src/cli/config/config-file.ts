// The configuration file: the one that is named, or the nearest one upwards.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { Sources } from './sources.ts'

export const CONFIG_FILE = 'leasehold.config.json'

/** The named file, or the nearest one upwards; undefined where there is none. */
export const readConfigFile = (
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

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
