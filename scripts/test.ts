// `npm test`: builds, runs every level of test, and says how many passed as its last line.
// Arguments go on to the runner, so that `npm test -- lease` runs the files whose path has that word.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { isMain, root } from './files.ts'

export type Results = {
  numPassedTests: number
  numFailedTests: number
  testResults: { status: string; assertionResults: unknown[] }[]
}

/** A file that could not even be loaded has no tests to count: it counts as one that failed. */
export function summary({ numPassedTests, numFailedTests, testResults }: Results): string {
  const broken = testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.length,
  )
  return `${numPassedTests} passed, ${numFailedTests + broken.length} failed`
}

function run(command: string, args: string[]): boolean {
  return spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status === 0
}

function testAll(args: string[]): { ok: boolean; line: string } {
  if (!run('npm', ['run', '--silent', 'build'])) return { ok: false, line: '0 passed, 1 failed' }
  const folder = mkdtempSync(path.join(os.tmpdir(), 'leasehold-test-'))
  try {
    const results = path.join(folder, 'results.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`]
    const ok = run(process.execPath, [
      'node_modules/vitest/vitest.mjs',
      'run',
      ...reporters,
      ...args,
    ])
    return { ok, line: summary(JSON.parse(readFileSync(results, 'utf8'))) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (isMain(import.meta.url)) {
  const { ok, line } = testAll(process.argv.slice(2))
  console.log(line)
  process.exitCode = ok ? 0 : 1
}
