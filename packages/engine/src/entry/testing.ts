// `leasehold/testing`: a whole engine with a clock of its own.
export { testEngine } from '../testing/engine.ts'
export type { TestEngine, TestEngineOptions } from '../testing/engine.ts'
export type { RunView } from '../testing/inspect.ts'
