// Before what starts real processes, `npm start` and tests: the build is made when it is older than its source.
import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import path from 'node:path'
import { filesUnder, isMain, isTest, root } from './files.ts'

export function isStale(sources: number[], builds: (number | undefined)[]): boolean {
  return builds.some((built) => built === undefined || sources.some((source) => source > built))
}

const timeOf = (file: string): number | undefined => {
  const full = path.join(root, file)
  return existsSync(full) ? statSync(full).mtimeMs : undefined
}

export function setup(): void {
  const sources = (folder: string): number[] =>
    filesUnder(folder, ['.ts', '.css', '.html'])
      .filter((file) => !isTest(file))
      .flatMap((file) => timeOf(file) ?? [])
  const engine = isStale(sources('packages/engine/src'), [
    timeOf('packages/engine/dist/cli/main.js'),
  ])
  const page = isStale(sources('packages/dashboard/src'), [
    timeOf('packages/dashboard/dist/index.html'),
  ])
  if (engine || page) {
    console.log('building, since the build is missing or older than its source')
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' })
  }
}

if (isMain(import.meta.url)) {
  try {
    setup()
  } catch {
    // the build has said what is wrong
    process.exitCode = 1
  }
}
