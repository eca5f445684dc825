// JSON on the command line: as it stands, from a file as `@path`, or from stdin as `-`.
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { UsageError } from './exit.ts'

/** The value, or undefined where none was given; throws a UsageError that says which text is no JSON. */
export const readJson = async (given: string | undefined, cwd: string): Promise<unknown> => {
  if (given === undefined) return undefined
  const [content, where] = given.startsWith('@')
    ? [await readFile(path.resolve(cwd, given.slice(1)), 'utf8').catch(unreadable(given)), given]
    : given === '-'
      ? [await text(process.stdin), 'what stdin brought']
      : [given, `${given.slice(0, 60)}${given.length > 60 ? '…' : ''}`]
  try {
    return JSON.parse(content) as unknown
  } catch (error) {
    throw new UsageError(
      `${where} is not JSON: ${(error as Error).message}; a text needs its quotes, as in '"text"'`,
    )
  }
}

const unreadable =
  (given: string) =>
  (error: Error): never => {
    throw new UsageError(`${given} cannot be read: ${error.message}`)
  }
