// `leasehold sim`: the simulator belongs to the repository, so only a checkout has it.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { packageFolder } from '../package-folder.ts'

export const run: Run = async ({ args, out }) => {
  const root = path.join(packageFolder, '../..')
  const script = path.join(root, 'scripts', 'sim.ts')
  if (!existsSync(script)) {
    out.error(
      'the simulator is not part of the package; run `leasehold sim` in a checkout of the repository',
    )
    return exit.usage
  }
  const child = spawn(process.execPath, ['--import', 'tsx', script, ...args], {
    cwd: root,
    stdio: 'inherit',
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? exit.failed))
  })
}
