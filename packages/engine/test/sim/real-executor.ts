// The real executor in a world: the same programs, written as workflows, and nothing of it replaced but its ports.
import { LeaseholdError } from '../../src/kernel/errors.ts'
import type { AnyWorkflow, Context, Preparation } from '../../src/executor/authoring/context.ts'
import type { Executor } from '../../src/executor/executor.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import { workflow } from '../../src/executor/authoring/workflow.ts'
import type { ExecutorPort } from '../../src/model/work.ts'
import type { Contexts } from './contexts.ts'
import type { Driver } from './driver.ts'
import { ABORT_GRACE_MS, DRAIN_MS, ExecutorWatch } from './executor-watch.ts'
import type { Faults } from './faults.ts'
import type { Input, Op } from './programs.ts'
import { definitionFor, outputOf } from './programs.ts'
import type { Machine } from './machine.ts'
import type { Hooks, Setup } from './scripted-executor.ts'
import { servedBy } from './scripted-executor.ts'
import type { Node, World } from './world.ts'

export interface Surroundings {
  readonly faults: Faults
  /** With it some of its workflows have a process for each attempt there. */
  readonly machine: Machine | null
  /** With them every other workflow has a context. */
  readonly contexts: Contexts | null
}

export class RealExecutor implements Driver {
  readonly node: Node
  readonly #world: World
  readonly #executor: Executor
  readonly #watch: ExecutorWatch
  readonly #setup: Setup
  readonly #machine: Machine | null
  #startedAt = Number.POSITIVE_INFINITY

  constructor(
    world: World,
    node: Node,
    port: ExecutorPort,
    setup: Setup,
    hooks: Hooks,
    { faults, machine, contexts }: Surroundings,
  ) {
    this.#machine = machine
    this.#world = world
    this.node = node
    this.#setup = setup
    this.#watch = new ExecutorWatch(
      {
        world,
        node,
        faults,
        machine,
        status: () => this.#executor.status(),
        clear: (run) => void this.#executor.clear(run),
      },
      () => this.#startedAt,
    )
    const isolated = machine === null ? null : 'process'
    this.#executor = makeExecutor({
      port: this.#watch.around(port),
      ports: node.ports,
      workflows: workflowsFor(world, node, setup, hooks, {
        isolated,
        contexts,
        slotsUsed: () => this.#executor.status().slots.reduce((sum, { used }) => sum + used, 0),
      }),
      ...(machine
        ? {
            stallLimitMs: 1_200,
            scratch: machine.scratchOf(node),
            processes: machine.processesOf(node, (inner, die) =>
              workflowsFor(
                world,
                inner,
                setup,
                { ...hooks, die },
                { isolated, contexts, slotsUsed: null },
              ),
            ),
          }
        : {}),
      slots: { default: setup.capacity },
      host: node.name,
      drainMs: DRAIN_MS,
      abortGraceMs: ABORT_GRACE_MS,
      maxChainDepth: 3,
      claimWaitMs: 250,
    })
  }

  ended(): void {
    this.#machine?.closed(this.node)
  }

  get session(): string {
    return this.#executor.status().session ?? ''
  }

  get busy(): boolean {
    return this.#executor.status().jobs.length > 0
  }

  get room(): number {
    const { state, fenced, jobs, markers } = this.#executor.status()
    return state === 'running' && !fenced ? this.#setup.capacity - jobs.length - markers.length : 0
  }

  serves(workflow: string): boolean {
    return servedBy(this.#setup).some(({ name }) => name === workflow)
  }

  settling(run: string): boolean {
    const { jobs, markers } = this.#executor.status()
    return [...jobs, ...markers].some((each) => each.run === run)
  }

  forget(): boolean {
    return false
  }

  start(): void {
    this.#startedAt = this.#world.now
    void this.#start()
  }

  async #start(): Promise<void> {
    for (;;)
      try {
        return await this.#executor.start()
      } catch (error) {
        if (!(error instanceof LeaseholdError)) throw error
        await this.#world.sleep(this.node, 200)
      }
  }

  async stop(): Promise<void> {
    this.#watch.stops()
    await this.#executor.stop()
    this.#watch.stopped()
  }
}

/** The programs as workflows of one process. */
export const workflowsFor = (
  world: World,
  node: Node,
  setup: Setup,
  hooks: Hooks,
  {
    isolated,
    contexts,
    slotsUsed,
  }: {
    /** Every third has a process for each attempt, or every one has a pod. */
    readonly isolated: 'process' | 'job' | null
    readonly contexts: Contexts | null
    readonly slotsUsed: (() => number) | null
  },
): AnyWorkflow[] => {
  const all = new Map<string, AnyWorkflow>()
  const atWork = new Map<string, number>()
  // what a run has begun holds its slot until it has settled, whatever became of its attempt (EX-10)
  const work = async (run: string, ms: number): Promise<void> => {
    atWork.set(run, (atWork.get(run) ?? 0) + 1)
    await world.sleep(node, ms)
    // a process has no slots, and its bodies end with it
    if (slotsUsed !== null && atWork.size > slotsUsed())
      world.violate(
        'EX-10',
        `${node.name} works on ${[...atWork.keys()].join(', ')} in ${slotsUsed?.()} slots`,
      )
    const left = (atWork.get(run) ?? 1) - 1
    if (left === 0) atWork.delete(run)
    else atWork.set(run, left)
  }
  for (const program of setup.programs) {
    const { attemptLimitMs, totalLimitMs, startByMs } = definitionFor(program)
    const made = workflow<Input, unknown>(
      {
        name: program.name,
        ...(program.limits ? { limits: program.limits } : {}),
        ...(program.retry ? { retry: program.retry } : {}),
        ...(attemptLimitMs === null ? {} : { attemptLimit: attemptLimitMs }),
        ...(totalLimitMs === null ? {} : { totalLimit: totalLimitMs }),
        ...(startByMs === null ? {} : { startBy: startByMs }),
        ...(program.onEnd === undefined ? {} : { onEnd: program.onEnd }),
        ...(isolated === 'job' || (isolated !== null && program.name.length % 3 === 0)
          ? { isolation: isolated }
          : {}),
        // every other program needs something first, which hears no signal
        ...(program.name.length % 2 === 0
          ? {
              prepare: (_input: Input, { run, attempt, signal }: Preparation) => {
                contexts?.prepares(signal, run, attempt)
                return work(run, 30)
              },
              ...(contexts
                ? {
                    context: (_input: Input, { signal }: { readonly signal: AbortSignal }) =>
                      contexts.read(signal),
                  }
                : {}),
            }
          : {}),
      },
      async (ctx, given) => {
        const input = given ?? {}
        contexts?.launched(ctx.info.run, ctx.info.attempt)
        const results: [string, unknown][] = []
        for (const op of program.ops(input)) {
          // worlds without processes are as they were before there were logs
          if (isolated !== null) ctx.log(`${ctx.info.run}#${ctx.info.attempt}`)
          await perform(ctx, op, results, { world, node, hooks, all, work })
        }
        const next = program.next?.(input) ?? null
        return next === null ? results : ctx.continueAs(next)
      },
    )
    all.set(program.name, made)
  }
  return servedBy(setup).flatMap(({ name }) => all.get(name) ?? [])
}

interface Around {
  readonly world: World
  readonly node: Node
  readonly hooks: Hooks
  readonly work: (run: string, ms: number) => Promise<void>
  readonly all: ReadonlyMap<string, AnyWorkflow>
}

const perform = async (
  ctx: Context,
  op: Op,
  results: [string, unknown][],
  around: Around,
): Promise<void> => {
  const { hooks, all, work } = around
  const { run, attempt } = ctx.info
  const body = async (key: string, ms: number): Promise<unknown> => {
    hooks.body(run, attempt, key)
    await work(run, ms)
    return JSON.parse(outputOf(run, key)) as unknown
  }
  const child = (name: string): AnyWorkflow => {
    const found = all.get(name)
    if (!found) throw new Error(`there is no workflow ${name}`)
    return found
  }
  switch (op.do) {
    case 'step': {
      const { key, ms, failing = 0, retryMs = 100 } = op
      results.push([
        key,
        await ctx.step(
          key,
          async ({ tryNumber }) => {
            const value = await body(key, ms)
            if (tryNumber <= failing) throw new Error(`try ${tryNumber}`)
            return value
          },
          { retry: { maxAttempts: failing + 1, base: retryMs, factor: 1 } },
        ),
      ])
      return
    }
    case 'parallel': {
      const values = await Promise.all(
        op.keys.map((key, i) => ctx.step(key, () => body(key, op.ms + 37 * ((i * 2) % 3)))),
      )
      op.keys.forEach((key, i) => results.push([key, values[i]]))
      return
    }
    case 'sleep':
      return ctx.sleep(op.key, op.ms)
    case 'signal':
      await (op.ms === null
        ? ctx.signal(op.name, { as: op.key })
        : ctx.signal(op.name, { as: op.key, timeout: op.ms }))
      return
    case 'approval':
      await ctx.approval(op.key, { prompt: `${op.key}?`, deadline: op.ms })
      return
    case 'child':
      try {
        await ctx.run(child(op.workflow), op.input, { as: op.key })
      } catch (error) {
        if (!(error instanceof LeaseholdError) || error.code !== 'child_failed') throw error
      }
      return
    case 'spawn':
      await ctx.spawn(child(op.workflow), op.input, {
        as: op.key,
        onParentEnd: op.bound ? 'cancel' : 'detach',
      })
      return
    case 'race':
      await ctx.race('race', {
        signal: (branch) => branch.signal(op.name, { as: op.signal }),
        timer: (branch) => branch.sleep(op.timer, op.ms),
      })
      return
    case 'contest':
      await ctx.race('contest', {
        timer: (branch) => branch.sleep(op.timer, op.timerMs),
        work: (branch) =>
          branch.step(
            op.key,
            async ({ tryNumber }) => {
              const value = await body(`contest:work/${op.key}`, op.ms)
              if (tryNumber <= op.failing) throw new Error(`try ${tryNumber}`)
              return value
            },
            { retry: { maxAttempts: op.failing + 1, base: op.retryMs, factor: 1 } },
          ),
      })
      return
    case 'both':
      await Promise.all(op.keys.map((key) => ctx.signal(op.name, { as: key, timeout: op.ms })))
      return
    case 'watch':
      // the real one lets no function end while it stands at a wait
      return
    case 'deaf':
      results.push([op.key, await ctx.step(op.key, () => body(op.key, op.ms))])
      return
    case 'die':
      await ctx.step(op.key, async () => {
        await body(op.key, 10)
        hooks.die()
      })
      return
    case 'chain':
      return
    case 'show':
      return ctx.progress(attempt)
    case 'throw':
      if (attempt <= op.times) throw new Error('thrown by the program')
      return
  }
}
