import { defineConfig } from 'vitest/config'

/** What is too long for every change is run at night: LEASEHOLD_NIGHTLY=1. */
const nightly = process.env['LEASEHOLD_NIGHTLY'] === '1'
const TORTURE = 'packages/engine/test/e2e/torture.test.ts'
/** Of several databases by themselves, of schemas and crashes of one, or of what several do not do yet. */
const ONE_STORE = [
  'run-shards*',
  'rail-upgrades',
  'rail-crashes',
  'rail-sockets',
  'rail-spawns',
].map((name) => `packages/engine/test/contract/${name}.test.ts`)
const outside = ['**/node_modules/**', '**/dist/**']

// The time-outs only end a test that hangs: how fast a machine is decides nothing.
export default defineConfig({
  test: {
    // most files wait for disks, processes and databases: each core has one
    maxWorkers: '100%',
    projects: [
      {
        test: {
          name: 'unit',
          isolate: false,
          include: ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts'],
          exclude: outside,
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'engine',
          isolate: false,
          include: ['packages/engine/test/**/*.test.ts'],
          exclude: [...outside, 'packages/engine/test/{e2e,browser,postgres}/**'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          // what the store promises, on the other database
          name: 'postgres',
          isolate: false,
          include: [
            'packages/engine/test/contract/{run,slot,rail,round}-*.test.ts',
            'packages/engine/test/property/**/*.test.ts',
            'packages/engine/test/postgres/**/*.test.ts',
          ],
          exclude: outside,
          globalSetup: ['scripts/postgres.ts'],
          env: { LEASEHOLD_TEST_STORE: 'postgres' },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          // the same through a pooler in transaction mode: some of it, and at night all
          name: 'pooled',
          isolate: false,
          include: [
            `packages/engine/test/contract/${nightly ? '{run,slot,rail}' : 'run-{claims,fence}'}*.test.ts`,
            ...(nightly ? ['packages/engine/test/property/**/*.test.ts'] : []),
          ],
          exclude: outside,
          globalSetup: ['scripts/postgres.ts', 'scripts/pooler.ts'],
          env: { LEASEHOLD_TEST_STORE: 'pooled' },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          // the same on two databases that are joined as one store: what speaks for the seam, and at night all of it
          name: 'shards',
          isolate: false,
          include: [
            `packages/engine/test/contract/${nightly ? '{run,slot,rail}-*' : '{run-claims,run-family,run-fence,run-leases,run-stops,run-waits,slot-limits,rail-fence}'}.test.ts`,
          ],
          exclude: [...outside, ...ONE_STORE],
          env: { LEASEHOLD_TEST_SHARDS: '2' },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'shards-postgres',
          isolate: false,
          include: [
            `packages/engine/test/contract/${nightly ? '{run,slot,rail}-*' : 'run-fence'}.test.ts`,
          ],
          exclude: [...outside, ...ONE_STORE],
          globalSetup: ['scripts/postgres.ts'],
          env: { LEASEHOLD_TEST_STORE: 'postgres', LEASEHOLD_TEST_SHARDS: '2' },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['packages/engine/test/e2e/**/*.test.ts'],
          exclude: [...outside, TORTURE],
          globalSetup: ['scripts/built.ts', 'scripts/postgres.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
      {
        test: {
          // after all others: what strikes is to meet work, and the processes of other tests leave little room for it
          name: 'torture',
          include: [TORTURE],
          exclude: outside,
          globalSetup: ['scripts/built.ts'],
          sequence: { groupOrder: 1 },
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
      {
        test: {
          name: 'browser',
          include: ['packages/engine/test/browser/**/*.test.ts'],
          exclude: outside,
          globalSetup: ['scripts/built.ts', 'packages/engine/test/browser/browser.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
    ],
  },
})
