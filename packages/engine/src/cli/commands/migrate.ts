// `leasehold migrate`: brings a store to this program’s schema; a file, while nobody owns it.
import { systemPorts } from '../../kernel/ports.ts'
import { nameOf } from '../../model/store-at.ts'
import { migrateStore } from '../../orchestrator/main.ts'
import type { Run } from '../call.ts'
import { loadConfig, storeOf } from '../config.ts'
import { exit } from '../exit.ts'

export const run: Run = async ({ options, out, sources }) => {
  const { config } = loadConfig(sources)
  const at = storeOf(config)
  const { applied, version } = await migrateStore(at, systemPorts())
  if (options.json) out.json({ store: nameOf(at), applied, version })
  else {
    for (const name of applied) out.line(`applied ${name}`)
    out.line(`${nameOf(at)} is at schema ${version}`)
  }
  return exit.ok
}
