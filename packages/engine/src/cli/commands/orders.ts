// `leasehold orders`: those that were set aside; with an order and a flag, what becomes of it.
import { LeaseholdError } from '../../kernel/errors.ts'
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { clock, table } from '../said.ts'
import { reach } from '../server.ts'

export const run: Run<{ readonly retry?: boolean; readonly drop?: boolean }> = async ({
  args: [order = ''],
  options: { retry, drop, json },
  out,
  sources,
}) => {
  const { client } = reach(sources)
  if ((retry === true || drop === true) !== (order !== '') || (retry && drop))
    throw new LeaseholdError(
      'invalid_config',
      'an order is named with one of --retry and --drop; without any, those that are set aside are listed',
    )
  if (order !== '') {
    const answer = await (retry === true ? client.retryOrder(order) : client.dropOrder(order))
    if (json) out.json(answer)
    else out.line(`${answer.order} was ${answer.done}`)
    return exit.ok
  }
  const orders = await client.ordersSetAside()
  if (json) out.json({ orders })
  else if (orders.length === 0) out.note('no order is set aside')
  else
    table(
      out,
      ['since', 'order', 'kind', 'run', 'failures', 'error'],
      orders.map((each) => [
        clock(each.setAsideAt),
        each.id,
        each.kind,
        each.run,
        String(each.failures),
        each.error ?? '',
      ]),
    )
  return exit.ok
}
