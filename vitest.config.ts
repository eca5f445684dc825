import { defineConfig } from 'vitest/config'

const outside = ['**/node_modules/**', '**/dist/**']

// The time-outs only end a test that hangs: how fast a machine is decides nothing.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts'],
          exclude: outside,
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'engine',
          include: ['packages/engine/test/**/*.test.ts'],
          exclude: [...outside, 'packages/engine/test/e2e/**'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['packages/engine/test/e2e/**/*.test.ts'],
          exclude: outside,
          globalSetup: ['scripts/built.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
    ],
  },
})
