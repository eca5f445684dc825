import { defineConfig } from 'vitest/config'

const outside = ['**/node_modules/**', '**/dist/**']

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts'],
          exclude: outside,
        },
      },
      {
        test: {
          name: 'engine',
          include: ['packages/engine/test/**/*.test.ts'],
          exclude: [...outside, 'packages/engine/test/e2e/**'],
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['packages/engine/test/e2e/**/*.test.ts'],
          exclude: outside,
          globalSetup: ['scripts/built.ts'],
          testTimeout: 60_000,
        },
      },
    ],
  },
})
