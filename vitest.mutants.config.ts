// What `npm run mutants` runs for each change it makes.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: [
      'packages/engine/src/{executor,maintenance,model}/*.test.ts',
      'packages/engine/test/contract/{executor,run-leases,run-fence,slot}*.test.ts',
    ],
    testTimeout: 20_000,
  },
})
