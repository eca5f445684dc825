// `leasehold migrate`: brings a store to this program’s schema; a file, while nobody owns it. With `--to` all that a file
// holds is moved to a database; with `--plan` it only says what it would do, and whom that keeps waiting.
import { LeaseholdError } from '../../kernel/errors.ts'
import { systemPorts } from '../../kernel/ports.ts'
import type { StoreAt } from '../../model/store-at.ts'
import { nameOf, storesIn } from '../../model/store-at.ts'
import { migrateStore, moveStore, ofPlace, planMigrations } from '../../orchestrator/main.ts'
import type { Call, Run } from '../call.ts'
import { loadConfig } from '../config/load-config.ts'
import { storeOf } from '../config/store.ts'
import { exit } from '../exit.ts'

export const run: Run<{ readonly to?: string; readonly plan?: boolean }> = async ({
  options,
  out,
  sources,
}) => {
  const { config } = loadConfig(sources)
  const { to } = options
  const stores = storesIn(storeOf(config))
  if (options.plan === true) {
    for (const at of stores) await plan({ options, out }, at)
    return exit.ok
  }
  if (to !== undefined) return move({ options, out }, config.file, to, config.databaseSchema)
  // of several each is migrated by itself: one that fails leaves those before it migrated
  for (const [number, at] of stores.entries()) {
    const { applied, version } = await ofPlace(at, { number, count: stores.length }, () =>
      migrateStore(at, systemPorts()),
    )
    if (options.json) out.json({ store: nameOf(at), applied, version })
    else {
      for (const name of applied) out.line(`applied ${name}`)
      out.line(`${nameOf(at)} is at schema ${version}`)
    }
  }
  return exit.ok
}

const plan = async (
  { options, out }: Pick<Call, 'options' | 'out'>,
  at: StoreAt,
): Promise<void> => {
  const planned = await planMigrations(at, systemPorts())
  if (options.json) {
    out.json({ store: nameOf(at), migrations: planned })
    return
  }
  if (planned.length === 0) out.line(`${nameOf(at)} is at the newest schema`)
  for (const { name, statements } of planned) {
    out.line(name)
    for (const { text, lock } of statements) {
      // what a new table consists of keeps nobody waiting; --json has it all
      const [made] = /^create table \w+/i.exec(text) ?? []
      const keeps = lock
        ? `${lock.level} on ${lock.table}, ${lock.means}`
        : made === undefined
          ? 'nobody waits, since its table is new'
          : 'nobody waits, since it is new'
      out.line(`  ${made ?? text.replace(/\s+/g, ' ')}: ${keeps}`)
    }
  }
  if (planned.length > 0)
    out.note(
      'file' in at
        ? 'a file is migrated while nobody owns it'
        : 'each is one transaction: its locks last until it commits',
    )
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
