// `leasehold migrate`: brings a store to this program’s schema; a file, while nobody owns it. With `--to` all that a file
// holds is moved to a database.
import { LeaseholdError } from '../../kernel/errors.ts'
import { systemPorts } from '../../kernel/ports.ts'
import type { StoreAt } from '../../model/store-at.ts'
import { nameOf } from '../../model/store-at.ts'
import { migrateStore, moveStore } from '../../orchestrator/main.ts'
import type { Call, Run } from '../call.ts'
import { loadConfig, storeOf } from '../config.ts'
import { exit } from '../exit.ts'

export const run: Run<{ readonly to?: string }> = async ({ options, out, sources }) => {
  const { config } = loadConfig(sources)
  const { to } = options
  if (to !== undefined) return move({ options, out }, config.file, to, config.databaseSchema)
  const at = storeOf(config)
  const { applied, version } = await migrateStore(at, systemPorts())
  if (options.json) out.json({ store: nameOf(at), applied, version })
  else {
    for (const name of applied) out.line(`applied ${name}`)
    out.line(`${nameOf(at)} is at schema ${version}`)
  }
  return exit.ok
}

const move = async (
  { options, out }: Pick<Call, 'options' | 'out'>,
  file: string,
  to: string,
  schema: string,
): Promise<number> => {
  if (!/^postgres(ql)?:\/\//.test(to) || !URL.canParse(to))
    throw new LeaseholdError(
      'invalid_config',
      `--to is no database: expected a URL such as postgres://user@host/database`,
    )
  const at: Extract<StoreAt, { readonly database: string }> = { database: to, schema }
  const { tables, before } = await moveStore(file, at, systemPorts(), (table, rows) => {
    if (!options.json && rows > 0) out.line(`${table}: ${rows} rows, read back and equal`)
  })
  if (options.json) out.json({ file, to: nameOf(at), tables, before })
  else
    out.line(
      before
        ? `${file} had been moved to ${nameOf(at)} before`
        : `${file} was moved to ${nameOf(at)}; serve that from now on, and run doctor once`,
    )
  return exit.ok
}
