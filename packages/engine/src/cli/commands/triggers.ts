// `leasehold triggers`: lists triggers, shows one with its newest deliveries, tries it on
// a payload, and sets, pauses, resumes and deletes them.
import type { SentBodyOf } from '../../protocol/route.ts'
import type { Routes } from '../../protocol/routes.ts'
import type { Trigger, TriggerDetail } from '../../client/client.ts'
import type { Call, Run } from '../call.ts'
import { exit, UsageError } from '../exit.ts'
import { readJson } from '../json-argument.ts'
import { clock, cut, table } from '../said.ts'
import { reach } from '../server.ts'

interface Options {
  readonly spec?: string
  readonly payload?: string
  readonly event?: string
  readonly reason?: string
}

const ACTIONS = ['list', 'show', 'set', 'try', 'pause', 'resume', 'delete']

export const run: Run<Options> = async (call) => {
  const { args, options, out, sources } = call
  const [given = '', name = ''] = args
  const action = given === '' ? 'list' : given
  if (!ACTIONS.includes(action))
    throw new UsageError(
      `there is no \`leasehold triggers ${action}\`; expected one of ${ACTIONS.join(', ')}`,
    )
  if (action !== 'list' && name === '')
    throw new UsageError(`name the trigger, as in \`leasehold triggers ${action} pulls\``)
  if (action === 'set' && options.spec === undefined)
    throw new UsageError(
      `say what it takes and starts, as in \`leasehold triggers set ${name} --spec @${name}.json\``,
    )
  if (action === 'try' && options.payload === undefined)
    throw new UsageError(
      `say what a delivery brings, as in \`leasehold triggers try ${name} --event push --payload @push.json\``,
    )
  const payload = await readJson(options.payload, sources.cwd)
  const spec = await readJson(options.spec, sources.cwd)
  const { client } = reach(sources)
  switch (action) {
    case 'list': {
      const triggers = await client.triggers()
      if (options.json) out.json({ triggers })
      else if (triggers.length === 0)
        out.note('there is no trigger; `leasehold triggers set <name>` makes one')
      else table(out, HEAD, triggers.map(cells))
      return exit.ok
    }
    case 'show':
      return show(call, await client.trigger(name))
    case 'set':
      // the server says what of it does not fit
      return show(call, await client.setTrigger(name, spec as SentBodyOf<Routes['setTrigger']>))
    case 'try': {
      const { event = null } = options
      const tried = await client.tryTrigger(name, { event, payload })
      if (options.json) out.json(tried)
      else if (tried.action === null) out.line(`ignored: ${tried.ignored}`)
      else out.line(JSON.stringify(tried.action, null, 2))
      return exit.ok
    }
    case 'pause':
      return show(call, await client.pauseTrigger(name, options.reason))
    case 'resume':
      return show(call, await client.resumeTrigger(name))
    default: {
      const deleted = await client.deleteTrigger(name)
      if (options.json) out.json(deleted)
      else out.line(`${deleted.name} deleted`)
      return exit.ok
    }
  }
}

const show = ({ options, out }: Call<Options>, detail: TriggerDetail): number => {
  if (options.json) {
    out.json(detail)
    return exit.ok
  }
  const { trigger, deliveries } = detail
  table(out, HEAD, [cells(trigger)])
  for (const fault of trigger.faults) out.line(`${out.colors.yellow('fault')} ${fault}`)
  if (trigger.pausedAt !== null)
    out.line(
      `paused by ${trigger.pausedBy ?? 'somebody'} at ${clock(trigger.pausedAt)}${trigger.why === null ? '' : `: ${trigger.why}`}`,
    )
  if (deliveries.length > 0) {
    out.line()
    table(
      out,
      ['delivery', 'event', 'came', 'times', 'outcome', 'run', 'note'],
      deliveries.map((each) => [
        cut(each.delivery, 40),
        each.event ?? '-',
        clock(each.at),
        String(each.times),
        each.outcome,
        each.run ?? '-',
        cut(each.note ?? '', 60),
      ]),
    )
  }
  return exit.ok
}

const HEAD = ['trigger', 'kind', 'path', 'starts', 'secrets', 'state']

const cells = (trigger: Trigger): string[] => [
  trigger.name,
  trigger.kind,
  trigger.path,
  [...new Set(trigger.rules.map(({ workflow }) => workflow))].join(', '),
  trigger.secrets.join(', '),
  trigger.pausedAt !== null ? 'paused' : trigger.faults.length > 0 ? 'faulty' : 'active',
]
