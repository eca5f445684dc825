// Where the function of a workflow runs, as its author declares it.
import { LeaseholdError } from '../kernel/errors.ts'

/** A process of its own for each attempt. */
export interface ProcessIsolation {
  readonly kind: 'process'
  /** What its heap may take; past it the process ends, and its attempt is lost. Default: Node's own. */
  readonly memoryMb?: number
  /** Names of the executor's environment that it sees. Default: none but what every program needs. */
  readonly env?: readonly string[]
}

export type Isolation = 'inline' | 'process' | ProcessIsolation

interface Isolated {
  readonly kind: 'inline' | 'process'
  readonly memoryMb: number | null
  readonly env: readonly string[]
}

/** What an author's word comes to. */
export const isolationOf = ({ isolation = 'inline' }: { isolation?: Isolation }): Isolated => {
  const {
    kind,
    memoryMb = null,
    env = [],
  } = typeof isolation === 'string' ? { kind: isolation } : (isolation as ProcessIsolation)
  return { kind, memoryMb, env }
}

/** Refuses what no process could be started with. */
export const mustIsolate = (name: string, isolation: Isolation | undefined): Isolated => {
  const made = isolationOf(isolation === undefined ? {} : { isolation })
  const { kind, memoryMb, env } = made
  const no = (found: string, expected: string): LeaseholdError =>
    new LeaseholdError('invalid_config', `isolation of ${name}: ${found}; expected ${expected}`)
  if (kind !== 'inline' && kind !== 'process')
    throw no(`${JSON.stringify(kind)}`, "'inline' or 'process'")
  if (memoryMb !== null && !(Number.isInteger(memoryMb) && memoryMb >= 16))
    throw no(`memoryMb is ${JSON.stringify(memoryMb)}`, 'a whole number of megabytes, at least 16')
  if (!Array.isArray(env) || !env.every((each) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(String(each))))
    throw no(`env is ${JSON.stringify(env)}`, 'names of environment variables')
  return made
}
