// `leasehold deliveries`: notices on their way to sinks; with one and a flag, what becomes of it.
import { LeaseholdError } from '../../kernel/errors.ts'
import { deliveryMachine } from '../../model/delivery.ts'
import type { DeliveryState } from '../../model/delivery.ts'
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import { clock, table } from '../said.ts'
import { reach } from '../server.ts'
import { PAGE, wholeNumber } from '../whole-number.ts'

interface Options {
  readonly retry?: boolean
  readonly drop?: boolean
  readonly state?: string
  readonly limit?: string
  readonly cursor?: string
}

export const run: Run<Options> = async ({
  args: [delivery = ''],
  options: { retry, drop, state, limit, cursor, json },
  out,
  sources,
}) => {
  const most = wholeNumber(limit, '--limit', PAGE) ?? 50
  if ((retry === true || drop === true) !== (delivery !== '') || (retry && drop))
    throw new LeaseholdError(
      'invalid_config',
      'a delivery is named with one of --retry and --drop; without any, they are listed',
    )
  if (state !== undefined && !isState(state))
    throw new LeaseholdError(
      'invalid_config',
      `--state is ${state}; expected ${deliveryMachine.states.join(', ')}`,
    )
  const { client } = reach(sources)
  if (delivery !== '') {
    const answer = await (retry === true
      ? client.retryDelivery(delivery)
      : client.dropDelivery(delivery))
    if (json) out.json(answer)
    else out.line(`${answer.delivery} was ${answer.done}`)
    return exit.ok
  }
  const page = await client.deliveries({
    limit: String(most),
    ...(state === undefined ? {} : { state }),
    ...(cursor === undefined ? {} : { cursor }),
  })
  const { deliveries, next } = page
  if (json) out.json(page)
  else if (deliveries.length === 0) out.note('there is no such delivery')
  else {
    table(
      out,
      ['at', 'delivery', 'state', 'sink', 'notice', 'of', 'refusals', 'says'],
      deliveries.map((each) => [
        clock(each.createdAt),
        each.id,
        each.state,
        each.sink,
        each.kind,
        each.run,
        String(each.refusals),
        each.error ?? each.note ?? '',
      ]),
    )
    if (next !== null) out.note(`more: leasehold deliveries --cursor ${next}`)
  }
  return exit.ok
}

const isState = (text: string): text is DeliveryState =>
  (deliveryMachine.states as readonly string[]).includes(text)
