// `leasehold migrate`: brings a file to this program's schema, while nobody owns it.
import { systemPorts } from '../../kernel/ports.ts'
import { migrateFile } from '../../orchestrator/main.ts'
import type { Run } from '../call.ts'
import { loadConfig } from '../config.ts'
import { exit } from '../exit.ts'

export const run: Run = async ({ options, out, sources }) => {
  const { config } = loadConfig(sources)
  const { applied, version } = await migrateFile(config.file, systemPorts())
  if (options.json) out.json({ file: config.file, applied, version })
  else {
    for (const name of applied) out.line(`applied ${name}`)
    out.line(`${config.file} is at schema ${version}`)
  }
  return exit.ok
}
