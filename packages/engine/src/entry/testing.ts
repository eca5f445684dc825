// `leasehold/testing`: a whole engine with a clock of its own.
export { testEngine } from '../testing/engine.ts'
export type { RunView, TestEngine, TestEngineOptions } from '../testing/engine.ts'
