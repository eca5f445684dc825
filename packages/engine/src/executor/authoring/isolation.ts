// Where the function of a workflow runs, as its author declares it.
import { isAbsolute } from 'node:path'
import { LeaseholdError } from '../../kernel/errors.ts'
import type { MembersOf } from '../../kernel/known-members.ts'
import { mustKnowMembers } from '../../kernel/known-members.ts'

/** What a process is kept from beside: it reads the files of its host, writes none, and has no network. Linux, by `bwrap`. */
export interface Sandbox {
  /** Whether it has the network of its host. Default: no. */
  readonly network?: boolean
  /** Folders in which it may write: absolute paths, which exist. Default: none but `TMPDIR`, in memory and its own. */
  readonly writable?: readonly string[]
}

/** A process of its own for each attempt. */
export interface ProcessIsolation {
  readonly kind: 'process'
  /** What its heap may take; past it the process ends, and its attempt is lost. Default: Node's own. */
  readonly memoryMb?: number
  /** Names of the executor's environment that it sees. Default: none but what every program needs. */
  readonly env?: readonly string[]
  /** A sandbox around it, `true` for the strictest. An executor whose host cannot make it does not start. Default: none. */
  readonly sandbox?: boolean | Sandbox
}

export type Isolation = 'inline' | 'process' | 'job' | ProcessIsolation

interface Isolated {
  readonly kind: 'inline' | 'process' | 'job'
  readonly memoryMb: number | null
  readonly env: readonly string[]
  readonly sandbox: Required<Sandbox> | null
}

/** What an author's word comes to. */
export const isolationOf = ({ isolation = 'inline' }: { isolation?: Isolation }): Isolated => {
  const {
    kind,
    memoryMb = null,
    env = [],
    sandbox = false,
  } = typeof isolation === 'string' ? { kind: isolation } : (isolation as ProcessIsolation)
  const { network = false, writable = [] } = typeof sandbox === 'boolean' ? {} : sandbox
  return { kind, memoryMb, env, sandbox: sandbox === false ? null : { network, writable } }
}

const PROCESS: MembersOf<ProcessIsolation> = {
  kind: true,
  memoryMb: true,
  env: true,
  sandbox: true,
}
const SANDBOX: MembersOf<Sandbox> = { network: true, writable: true }

/** Refuses what no process could be started with. */
export const mustIsolate = (name: string, isolation: Isolation | undefined): Isolated => {
  const no = (found: string, expected: string): LeaseholdError =>
    new LeaseholdError('invalid_config', `isolation of ${name}: ${found}; expected ${expected}`)
  const asked: unknown = (isolation as ProcessIsolation | undefined)?.sandbox
  if (asked !== undefined && typeof asked !== 'boolean' && !isRecord(asked))
    throw no(`sandbox is ${JSON.stringify(asked)}`, 'true, false, or { network, writable }')
  if (isRecord(isolation)) mustKnowMembers(isolation, PROCESS, `isolation of ${name}`)
  if (isRecord(asked)) mustKnowMembers(asked, SANDBOX, `the sandbox of ${name}`)
  const made = isolationOf(isolation === undefined ? {} : { isolation })
  const { kind, memoryMb, env, sandbox } = made
  if (kind !== 'inline' && kind !== 'process' && kind !== 'job')
    throw no(`${JSON.stringify(kind)}`, "'inline', 'process' or 'job'")
  if (memoryMb !== null && !(Number.isInteger(memoryMb) && memoryMb >= 16))
    throw no(`memoryMb is ${JSON.stringify(memoryMb)}`, 'a whole number of megabytes, at least 16')
  if (!Array.isArray(env) || !env.every((each) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(String(each))))
    throw no(`env is ${JSON.stringify(env)}`, 'names of environment variables')
  if (sandbox !== null && typeof sandbox.network !== 'boolean')
    throw no(`sandbox.network is ${JSON.stringify(sandbox.network)}`, 'true or false')
  if (sandbox !== null && !isFolders(sandbox.writable))
    throw no(`sandbox.writable is ${JSON.stringify(sandbox.writable)}`, 'absolute paths of folders')
  return made
}

const isRecord = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isFolders = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string' && isAbsolute(each))
