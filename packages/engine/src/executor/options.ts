// What an executor is made with.
import { inWords } from '../kernel/duration.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import type { ExecutorPort } from '../model/work.ts'
import type { AnyWorkflow } from './authoring/context.ts'
import type { AroundStep } from './authoring/environment.ts'
import { isolationOf } from './authoring/isolation.ts'
import type { Processes } from './processes/processes.ts'
import type { startRenewals } from './session/renewals.ts'
import type { Scratch } from './preparing/scratch.ts'
import type { Launcher } from './pods/launcher.ts'

export interface ExecutorOptions {
  readonly port: ExecutorPort
  readonly ports: Ports
  readonly workflows: readonly AnyWorkflow[]
  /** Queues to claim from. Default: each workflow's own. */
  readonly queues?: readonly string[]
  readonly labels?: readonly string[]
  /** Runs at once by slot class. Default `{ default: 10 }`. */
  readonly slots?: Readonly<Record<string, number>>
  readonly build?: string
  /** The id of its session, where somebody has chosen it: it has no other, and stops when that one was ended. */
  readonly session?: string
  readonly host?: string
  readonly pid?: number
  /** How long `stop` lets steps finish. Default 25 s. */
  readonly drainMs?: number
  /** How long aborted bodies may take to settle. Default 2 s. */
  readonly abortGraceMs?: number
  /** When the supervisor kills the process after its signal; what stopping may take must fit. Where it is known, give it. */
  readonly killLimitMs?: number
  /** Steps that one claim drives before a waiting run gets the slot. Default 50; 0 lets go after each. */
  readonly maxChainDepth?: number
  /** How long a claim waits for work at the engine. Default 20 s. */
  readonly claimWaitMs?: number
  /** Renewals from elsewhere than the main loop, as from a thread of their own. */
  readonly renewals?: typeof startRenewals
  readonly aroundStep?: AroundStep
  /** Where preparations put their files. Without it they can have none. */
  readonly scratch?: Scratch
  /** Starts the processes of workflows that are isolated so. Without it they are refused. */
  readonly processes?: Processes
  /** Starts the pods of workflows that are isolated so. Without it they are refused. */
  readonly launcher?: Launcher
  /** Values that are taken out of what its attempts write. What looks like a secret is taken out anyway. */
  readonly secrets?: readonly string[]
  /** How long an isolated process may leave a ping unanswered before it is killed. Default 60 s. */
  readonly stallLimitMs?: number
  /** Hears why the executor has stopped by itself: its server will not have it again, or a mistake of our own. */
  readonly onStopped?: (why: Error) => void
}

export const DRAIN_MS = 25_000
export const ABORT_GRACE_MS = 2_000
export const CLAIM_WAIT_MS = 20_000
/** How long a process may leave a ping unanswered, or a main loop hang, until nobody vouches for it. */
export const STALL_LIMIT_MS = 60_000

/** A supervisor that kills before the executor has let go would leave its runs to their lease (EX-20). */
export const mustEndBefore = ({
  killLimitMs,
  drainMs = DRAIN_MS,
  abortGraceMs = ABORT_GRACE_MS,
}: Pick<ExecutorOptions, 'killLimitMs' | 'drainMs' | 'abortGraceMs'>): void => {
  if (killLimitMs === undefined || drainMs + abortGraceMs < killLimitMs) return
  throw new LeaseholdError(
    'invalid_config',
    `stopping may take ${inWords(drainMs + abortGraceMs)} (drain limit ${inWords(drainMs)}, abort grace ${inWords(abortGraceMs)}), and the process is killed after ${inWords(killLimitMs)}; lower drainMs, or raise the kill limit of the supervisor above the sum`,
    { drainMs, abortGraceMs, killLimitMs },
  )
}

/** A workflow that wants a process or a pod of its own is not driven without one. */
export const mustIsolateAll = ({ workflows, processes, launcher }: ExecutorOptions): void => {
  const pod = workflows.find(({ definition }) => definition.isolation === 'job')
  if (pod && !launcher)
    throw new LeaseholdError(
      'invalid_config',
      `${pod.name} is to run in a Kubernetes job, and this executor starts none; use \`leasehold work\` with --job-template, or an isolation of 'inline' or 'process'`,
      { workflow: pod.name },
    )
  const wants = workflows.find(({ definition }) => definition.isolation === 'process')
  if (!wants || processes) return
  throw new LeaseholdError(
    'invalid_config',
    `${wants.name} is to run in a process of its own, and this executor does not know which module to load there; use \`leasehold work\`, or give the executor \`module\``,
    { workflow: wants.name },
  )
}

/** A workflow that wants a sandbox is not driven where there can be none. Null where no workflow wants one. */
export const mustSandboxAll = ({ workflows, processes }: ExecutorOptions): Promise<void> | null => {
  const wants = workflows.flatMap(({ name, options, definition }) => {
    const { sandbox } = isolationOf(options)
    return definition.isolation === 'process' && sandbox !== null ? [{ name, sandbox }] : []
  })
  if (wants.length === 0) return null
  return Promise.all(
    wants.map(async ({ name, sandbox }) => {
      const why =
        processes?.whyNoSandbox === undefined
          ? 'what starts its processes makes none'
          : await processes.whyNoSandbox(sandbox)
      if (why === null) return
      throw new LeaseholdError(
        'invalid_config',
        `${name} is to run in a sandbox, and this host cannot make it: ${why}. Mend that, or take \`sandbox\` out of its isolation; it is not run without`,
        { workflow: name },
      )
    }),
  ).then(() => undefined)
}
