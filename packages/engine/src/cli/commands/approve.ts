// `leasehold approve`: decides an approval, or lists those that wait for a decision.
import type { Client } from '../../client/client.ts'
import type { Call, Run } from '../call.ts'
import { exit, UsageError } from '../exit.ts'
import { readJson } from '../json-argument.ts'
import { ago, table } from '../said.ts'
import { reach } from '../server.ts'
import { systemTime } from '../../kernel/time.ts'

interface Options {
  readonly yes?: boolean
  readonly deny?: boolean
  readonly by?: string
  readonly reason?: string
  readonly payload?: string
  readonly run?: string
}

export const run: Run<Options> = async (call) => {
  const { args, options, out, sources } = call
  const [approval = ''] = args
  const flags = options.by === undefined ? sources.flags : { ...sources.flags, actor: options.by }
  const { client } = reach({ ...sources, flags })
  if (approval === '') return list(client, call)
  if (options.yes === options.deny) throw new UsageError('say --yes to approve or --deny to deny')
  const payload = await readJson(options.payload, sources.cwd)
  const more = {
    ...(options.reason === undefined ? {} : { reason: options.reason }),
    ...(payload === undefined ? {} : { payload }),
  }
  const answer = await (options.yes ? client.approve(approval, more) : client.deny(approval, more))
  if (options.json) out.json(answer)
  else out.line(`${answer.approval} ${answer.decision} by ${answer.by}`)
  return exit.ok
}

const list = async (client: Client, { options, out }: Call<Options>): Promise<number> => {
  if (options.yes || options.deny)
    throw new UsageError('name the approval; `leasehold approve` lists those that wait')
  const page = await client.approvals(options.run === undefined ? {} : { run: options.run })
  if (options.json) out.json(page)
  else if (page.approvals.length === 0) out.note('no approval waits for a decision')
  else
    table(
      out,
      ['approval', 'since', 'deadline', 'who may', 'question'],
      page.approvals.map((each) => [
        each.id,
        ago(each.createdAt, systemTime.now()),
        ago(each.deadline, systemTime.now()),
        each.deciders.join(', ') || 'everybody',
        each.prompt,
      ]),
    )
  return exit.ok
}
