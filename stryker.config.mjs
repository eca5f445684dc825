// `npm run mutants`: the code of the coordinator and of the lease is changed in one place at a time, and some test must fail.
export default {
  mutate: [
    'packages/engine/src/model/{coordinator,job,launch,settle,slots}.ts',
    'packages/engine/src/executor/driving/letting-go.ts',
    'packages/engine/src/executor/session/{renewals,session}.ts',
    'packages/engine/src/maintenance/reap-sessions.ts',
    'packages/engine/src/transitions/renew.ts',
  ],
  testRunner: 'vitest',
  vitest: { configFile: 'vitest.mutants.config.ts' },
  plugins: ['@stryker-mutator/vitest-runner'],
  coverageAnalysis: 'perTest',
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  allowConsoleColors: false,
  tempDirName: '.mutants',
  ignorePatterns: ['**/dist', 'docs', '.ci'],
  thresholds: { high: 95, low: 85, break: 85 },
}
