// A call of the program: runs the command that was named and turns what comes of it into an exit code.
import { CommanderError } from 'commander'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { exit, exitCodeOf, tell } from './exit.ts'
import { makeOutput } from './output.ts'
import { packageFolder } from './package-folder.ts'
import { makeProgram } from './program.ts'

const out = makeOutput()
const { version } = JSON.parse(readFileSync(path.join(packageFolder, 'package.json'), 'utf8')) as {
  version: string
}

// a reader that has seen enough, as `leasehold runs | head` has, is no error
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? exit.ok : exit.failed)
})

try {
  const program = makeProgram({
    out,
    env: process.env,
    cwd: process.cwd(),
    version,
    ended: (code) => {
      process.exitCode = code
    },
  })
  await program.parseAsync()
} catch (error) {
  if (error instanceof CommanderError)
    process.exitCode = error.exitCode === 0 ? exit.ok : exit.usage
  else {
    tell(error, out)
    process.exitCode = exitCodeOf(error)
  }
}
