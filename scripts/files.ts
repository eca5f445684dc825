// Where the house rules look: the files of the repository, found by folder and ending.
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')

export type Finding = { file: string; line: number; text: string }

/** The files under a folder of the repository, as sorted paths from its root with forward slashes. */
export function filesUnder(folder: string, endings: string[]): string[] {
  const top = path.join(root, folder)
  if (!existsSync(top)) return []
  return readdirSync(top, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => !/(^|\/)(node_modules|dist)\//.test(file))
    .toSorted()
}

export const isTest = (file: string): boolean =>
  /\.(test|contract)\.ts$/.test(file) || file.includes('/test/')

export const lineAt = (text: string, index: number): number =>
  text.slice(0, index).split('\n').length

/** Is this file the one that was started, and not one that is imported by a test? */
export const isMain = (url: string): boolean =>
  process.argv[1] !== undefined && fileURLToPath(url) === realpathSync(process.argv[1])

/** Prints the findings of a rule and sets the exit code; says so when there are none. */
export function report(rule: string, findings: Finding[]): void {
  for (const { file, line, text } of findings) console.error(`${file}:${line}: ${text}`)
  if (findings.length > 0) process.exitCode = 1
  console.log(findings.length > 0 ? `${rule}: ${findings.length} to mend` : `${rule}: ok`)
}
