// `leasehold slots`: limits, what is held of each, who waits; and an operator's own value for one.
import type { RunSummary } from '../../client/client.ts'
import type { Run } from '../call.ts'
import { exit, UsageError } from '../exit.ts'
import { ago, table } from '../said.ts'
import { reach } from '../server.ts'
import { wholeNumber } from '../whole-number.ts'
import { systemTime } from '../../kernel/time.ts'

type Slot = Awaited<ReturnType<ReturnType<typeof reach>['client']['slots']>>[number]

export const run: Run<{ readonly set?: string }> = async ({
  args: [key = ''],
  options,
  out,
  sources,
}) => {
  const wanted = options.set === 'code' ? null : wholeNumber(options.set, '--set', { least: 0 })
  if (wanted !== undefined && key === '')
    throw new UsageError('name the limit to set, as in `leasehold slots owner:ann --set 3`')
  const { client } = reach(sources)
  if (key === '') {
    const slots = await client.slots()
    if (options.json) out.json({ slots })
    else if (slots.length === 0) out.note('no run has a limit')
    else table(out, HEAD, slots.map(cells))
    return exit.ok
  }
  const detail = wanted === undefined ? await client.slot(key) : await client.setSlot(key, wanted)
  if (options.json) {
    out.json(detail)
    return exit.ok
  }
  table(out, HEAD, [cells(detail.slot)])
  if (typeof wanted === 'number' && isUndeclared(detail.slot))
    out.note(
      `no run has declared the limit ${key} so far: it counts for those that will; \`leasehold slots\` lists what there is, and \`--set code\` takes it back`,
    )
  const now = systemTime.now()
  if (detail.holders.length > 0) {
    out.line()
    table(
      out,
      ['holder', 'workflow', 'status', 'session', 'since', 'units'],
      detail.holders.map((each) => [
        each.run,
        each.workflow,
        statusWords(each),
        each.session ?? '-',
        ago(each.since, now),
        String(each.units),
      ]),
    )
  }
  if (detail.line.length > 0) {
    out.line()
    table(
      out,
      ['place', 'waits', 'workflow', 'since', 'units'],
      detail.line.map((each) => [
        String(each.place),
        each.run,
        each.workflow,
        ago(each.since, now),
        String(each.units),
      ]),
    )
  }
  return exit.ok
}

/** Every run has a limit of its owner, and one of all where that is set. */
const isUndeclared = ({ key, codeValue, used, waiters }: Slot): boolean =>
  codeValue === null && used + waiters === 0 && key !== 'global' && !key.startsWith('owner:')

const HEAD = ['limit', 'mode', 'used', 'of', 'waiters', 'code', 'operator', 'policy']

const cells = (slot: Slot): string[] => [
  slot.key,
  slot.mode,
  String(slot.used),
  slot.value === null ? 'no limit' : String(slot.value),
  `${slot.waiters}${slot.waitersMore ? ' and more' : ''}`,
  slot.codeValue === null ? '-' : String(slot.codeValue),
  slot.operatorValue === null ? '-' : `${slot.operatorValue} by ${slot.updatedBy ?? 'somebody'}`,
  slot.policy,
]

const statusWords = ({ status, waitOn }: Pick<RunSummary, 'status' | 'waitOn'>): string =>
  waitOn === null ? status : `${status} for ${waitOn}`
