// `leasehold queues`: what waits in each queue, for how long, and which slots are free; one queue with its lanes.
import type { Client } from '../../client/client.ts'
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { span, table } from '../said.ts'
import { reach } from '../server.ts'

type Queue = Awaited<ReturnType<Client['queues']>>[number]

export const run: Run = async ({ args: [name = ''], options, out, sources }) => {
  const { client } = reach(sources)
  if (name === '') {
    const queues = await client.queues()
    if (options.json) out.json({ queues })
    else if (queues.length === 0) out.note('no executor has announced a queue yet')
    else table(out, HEAD, queues.map(cells))
    return exit.ok
  }
  const queue = await client.queue(name)
  if (options.json) {
    out.json(queue)
    return exit.ok
  }
  table(out, HEAD, [cells(queue)])
  if (queue.lanes.length > 0) {
    out.line()
    table(
      out,
      ['workflow', 'version', 'labels', 'waiting', 'served'],
      queue.lanes.map((lane) => [
        lane.workflow,
        lane.version,
        lane.labels.join(',') || '-',
        `${lane.depth + lane.parked}${lane.more ? ' and more' : ''}`,
        lane.paused !== null ? 'paused' : lane.served ? 'yes' : lane.note,
      ]),
    )
  }
  return exit.ok
}

const HEAD = ['queue', 'waiting', 'oldest', 'held', 'wanted', 'executors', 'slots', 'free', 'state']

const cells = (queue: Queue): string[] => [
  queue.queue,
  `${queue.waiting}${queue.more ? ' and more' : ''}`,
  queue.waiting === 0 ? '-' : span(queue.oldestWaitMs),
  String(queue.held),
  String(queue.wanted),
  String(queue.executors),
  String(queue.capacity),
  String(queue.free),
  queue.paused === null ? 'open' : 'paused',
]
