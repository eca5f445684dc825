import fc from 'fast-check'
import { expect, it } from 'vitest'
import { broken } from '../support/crash.ts'
import { postgresUrl } from '../support/postgres.ts'
import { openStore } from '../support/store.ts'
import { commands } from './commands.ts'
import { World } from './world.ts'

// a sequence on PostgreSQL takes some ten times as long
const sequences = Number(process.env['LEASEHOLD_SEQUENCES'] ?? (postgresUrl() === null ? 300 : 40))

it(
  `RUN-02 RUN-03 RUN-07 RUN-09 RUN-12 RUN-14 RUN-16 RUN-17 RUN-18 RUN-28 RUN-29 RUN-30 SLOT-03 random commands leave each run as the model says, and break no invariant (${sequences} sequences)`,
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(commands, { minLength: 40, maxLength: 40 }), async (list) => {
        const world = new World(await openStore(), expect)
        try {
          for (const at of [0, 1]) await world.register(at)
          for (const command of list) {
            await world.run(command)
            world.check()
          }
          expect(await broken(world.t)).toEqual([])
        } finally {
          await world.t.close()
        }
      }),
      {
        numRuns: sequences,
        ...(process.env['LEASEHOLD_SEED'] === undefined
          ? {}
          : { seed: Number(process.env['LEASEHOLD_SEED']) }),
      },
    )
  },
  120_000 + sequences * 100,
)
