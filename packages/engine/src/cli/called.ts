// The program as a process: what it says goes to the terminal, and what comes of it becomes the exit code.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { exit } from './exit.ts'
import { makeOutput } from './output.ts'
import { packageFolder } from './package-folder.ts'
import { runProgram } from './run-program.ts'

const { version } = JSON.parse(readFileSync(path.join(packageFolder, 'package.json'), 'utf8')) as {
  version: string
}

// a reader that has seen enough, as `leasehold runs | head` has, is no error
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? exit.ok : exit.failed)
})

process.exitCode = await runProgram(process.argv.slice(2), {
  out: makeOutput(),
  env: process.env,
  cwd: process.cwd(),
  version,
})
