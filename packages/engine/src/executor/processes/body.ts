// In the process that drives one attempt: the function over its journal, as everywhere; its writes go to the executor that
// started the process, and when the channel to it closes there is nobody to work for.
import type { Facts } from '../../kernel/log.ts'
import { factsText } from '../../kernel/log.ts'
import type { Ports } from '../../kernel/ports.ts'
import { makeJob, moveJob } from '../../model/job.ts'
import type { Entry, WriteAnswer } from '../../model/work.ts'
import type { Answered, Begin, FromBody, ToBody } from './body-protocol.ts'
import { valueOf } from './body-protocol.ts'
import { codecOf } from '../authoring/codec.ts'
import type { AnyWorkflow } from '../authoring/context.ts'
import type { Driver } from '../driving/driver.ts'
import type { AroundStep } from '../authoring/environment.ts'
import type { ExecutorOptions } from '../options.ts'
import { makeDriver } from '../driving/run-driver.ts'
import { makeTurns } from '../driving/turns.ts'
import { callWorkflow } from '../workflow-call.ts'
import { workflowRetry } from '../workflow-retry.ts'

/** How a body speaks to its executor. */
export interface BodyChannel {
  send(message: FromBody): void
  /** All has settled: the process ends, with all that it started. */
  end(): void
}

/** Serves one attempt; what it answers hears the executor. */
export const serveBody = (
  workflows: readonly AnyWorkflow[],
  ports: Ports,
  channel: BodyChannel,
  aroundStep?: AroundStep,
): ((message: ToBody) => void) => {
  const calls = new Map<number, (answer: Answered<unknown>) => void>()
  let n = 0
  const call = <T>(ask: (n: number) => FromBody): Promise<T> =>
    new Promise<Answered<unknown>>((resolve) => {
      n += 1
      calls.set(n, resolve)
      channel.send(ask(n))
    }).then((answer) => valueOf(answer as Answered<T>))
  const hear = (id: number, answer: Answered<unknown>): void => {
    calls.get(id)?.(answer)
    calls.delete(id)
  }
  let driver: Driver | null = null
  const begin = (order: Begin): void => {
    const { workflow: name, version } = order.claimed
    const workflow = workflows.find((each) => each.name === name && each.version === version)
    if (!workflow) {
      channel.send({
        kind: 'unfit',
        message: `the module of this executor exports no workflow ${name} version ${version}`,
      })
      return channel.end()
    }
    driver = drive(
      workflow,
      order,
      { ports, ...(aroundStep ? { aroundStep } : {}) },
      {
        write: (write) => call<WriteAnswer>((id) => ({ kind: 'write', n: id, write })),
        page: (after) => call<readonly Entry[]>((id) => ({ kind: 'journal', n: id, after })),
      },
      (message, facts) =>
        channel.send({
          kind: 'log',
          message,
          facts: Object.keys(facts).length === 0 ? null : factsText(facts),
        }),
    )
    void driver.left.then((left) => channel.send({ kind: 'left', left }))
    void driver.settled.then(() => channel.end())
  }
  return (message) => {
    switch (message.kind) {
      case 'begin':
        return begin(message.begin)
      case 'written':
      case 'page':
        return hear(message.n, message.answer)
      case 'stop':
        if (message.reason === null) return driver?.drop(message.note)
        if (driver && driver.job.reason === null) {
          // its executor saves the reason
          driver.job.saved = true
          driver.stop(message.reason, message.note)
        }
        return
      case 'drain':
        return driver?.drain()
      case 'told':
        return driver?.told(message.directive, message.note)
      case 'ping':
        return channel.send({ kind: 'pong' })
    }
  }
}

const drive = (
  workflow: AnyWorkflow,
  order: Begin,
  options: Pick<ExecutorOptions, 'aroundStep' | 'ports'>,
  ways: Pick<Parameters<typeof makeDriver>[0], 'write' | 'page'>,
  log: (message: string, facts: Facts) => void,
): Driver => {
  const { claimed, generation, limits, prepared, context, now, maxChainDepth, rivals } = order
  const { run, attempt } = claimed
  const { ports } = options
  const job = makeJob(run, attempt, workflow.definition.slotClass, ports.time.now())
  const retryInMs = (error: unknown): number | undefined =>
    workflowRetry(workflow, claimed, error, ports.random.next())
  const driver = makeDriver({
    ...ways,
    claimed,
    job,
    ports,
    turns: makeTurns(ports.timers),
    storeOffset: now - ports.time.mono(),
    rivals: () => rivals,
    maxChainDepth,
    retryInMs,
  })
  const work = {
    claimed,
    driver,
    log: { log },
    workflow,
    prepared: codecOf(workflow.options.codec).decode(prepared),
  }
  moveJob(job, 'launch', 'launching')
  driver.start(() => callWorkflow(options, { generation, limits }, work, context))
  moveJob(job, 'run', 'running')
  return driver
}
