// The two databases are told apart by nothing: a random sequence of commands leaves the same history on both, row by row, after
// each command of it.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { commands } from '../property/commands.ts'
import { World } from '../property/world.ts'
import type { Row, TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

const TABLES = [
  'runs',
  'steps',
  'attempts',
  'waits',
  'signals',
  'approvals',
  'sessions',
  'definitions',
  'workflows',
  'lanes',
  'limits',
  'orders',
  'receipts',
  'notices',
  'events',
] as const

/** Only on a file is a session in the process of its engine embedded, and without a lease: elsewhere nothing proves its end. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  sessions: ['embedded', 'lease_until', 'process'],
}

/** Every row of a table as one text, by its columns' names, in an order of our own. */
const items = (t: TestStore, table: string): string[] =>
  t
    .sql(`select * from ${table}`)
    .map((row: Row) =>
      Object.keys(row)
        .filter((name) => OWN[table]?.includes(name) !== true)
        .sort()
        .map((name) => `${name}=${JSON.stringify(row[name])}`)
        .join(' '),
    )
    .sort()

const sequences = Number(process.env['LEASEHOLD_SEQUENCES'] ?? 12)

it(
  `PROOF-06 random commands leave the same history on SQLite and on PostgreSQL, item by item (${sequences} sequences)`,
  async () => {
    let compared = 0
    await fc.assert(
      fc.asyncProperty(fc.array(commands, { minLength: 40, maxLength: 40 }), async (list) => {
        const worlds = [
          new World(await openStore(), expect),
          new World(await openStore({ on: 'sqlite' }), expect),
        ] as const
        const [postgres, sqlite] = worlds
        try {
          expect([postgres, sqlite].map(({ t }) => t.engine.store.kind)).toEqual([
            'postgres',
            'sqlite',
          ])
          for (const world of worlds) for (const at of [0, 1]) await world.register(at)
          for (const [i, command] of list.entries()) {
            for (const world of worlds) await world.run(command)
            for (const table of TABLES) {
              const found = items(postgres.t, table)
              const expected = items(sqlite.t, table)
              compared += expected.length
              if (found.join('\n') !== expected.join('\n'))
                expect(found, `${table} after ${i + 1}, ${JSON.stringify(command)}`).toEqual(
                  expected,
                )
            }
          }
        } finally {
          for (const { t } of worlds) await t.close()
        }
      }),
      {
        numRuns: sequences,
        ...(process.env['LEASEHOLD_SEED'] === undefined
          ? {}
          : { seed: Number(process.env['LEASEHOLD_SEED']) }),
      },
    )
    expect(compared).toBeGreaterThan(sequences * 200)
  },
  120_000 + sequences * 2_000,
)
