// `leasehold schedules`: lists schedules, shows one with its next ten ticks, and makes, changes, pauses, resumes, fires and
// deletes them.
import type { ScheduleDetail } from '../../client/client.ts'
import { missedPolicies, overlapPolicies } from '../../model/schedule.ts'
import type { Call, Run } from '../call.ts'
import { exit, UsageError } from '../exit.ts'
import { readJson } from '../json-argument.ts'
import { clock, short, table } from '../said.ts'
import { reach } from '../server.ts'
import { PRIORITY, wholeNumber } from '../whole-number.ts'

interface Options {
  readonly cron?: string
  readonly zone?: string
  readonly workflow?: string
  readonly toVersion?: string
  readonly input?: string
  readonly owner?: string
  readonly queue?: string
  readonly priority?: string
  readonly missed?: string
  readonly overlap?: string
  readonly paused?: true
  readonly reason?: string
}

const ACTIONS = ['list', 'show', 'create', 'update', 'pause', 'resume', 'run-now', 'delete']

export const run: Run<Options> = async (call) => {
  const { args, options, out, sources } = call
  const [given = '', name = ''] = args
  const action = given === '' ? 'list' : given
  if (!ACTIONS.includes(action))
    throw new UsageError(
      `there is no \`leasehold schedules ${action}\`; expected one of ${ACTIONS.join(', ')}`,
    )
  if (action !== 'list' && name === '')
    throw new UsageError(`name the schedule, as in \`leasehold schedules ${action} nightly\``)
  const settings = await settingsOf(options, sources.cwd)
  const { client } = reach(sources)
  switch (action) {
    case 'list': {
      const schedules = await client.schedules()
      if (options.json) out.json({ schedules })
      else if (schedules.length === 0)
        out.note('there is no schedule; `leasehold schedules create <name>` makes one')
      else table(out, HEAD, schedules.map(cells))
      return exit.ok
    }
    case 'show':
      return show(call, await client.schedule(name))
    case 'create': {
      const { cron, workflow } = settings
      if (cron === undefined || workflow === undefined)
        throw new UsageError(
          `say when it fires and what it starts, as in \`leasehold schedules create ${name} --cron '0 3 * * *' --workflow backup\``,
        )
      const paused = options.paused === true
      return show(call, await client.createSchedule({ ...settings, cron, workflow, name, paused }))
    }
    case 'update':
      if (Object.keys(settings).length === 0)
        throw new UsageError('say what is to change, as in `--cron` or `--overlap`')
      return show(call, await client.changeSchedule(name, settings))
    case 'pause':
      return show(call, await client.pauseSchedule(name, options.reason))
    case 'resume':
      return show(call, await client.resumeSchedule(name))
    case 'run-now': {
      const started = await client.runSchedule(name)
      if (options.json) out.json(started)
      else out.line(started.run)
      return exit.ok
    }
    default: {
      const deleted = await client.deleteSchedule(name)
      if (options.json) out.json(deleted)
      else out.line(`${deleted.name} deleted`)
      return exit.ok
    }
  }
}

const settingsOf = async (options: Options, cwd: string) => {
  const input = await readJson(options.input, cwd)
  const priority = wholeNumber(options.priority, '--priority', PRIORITY)
  const missed = oneOf(missedPolicies, options.missed, '--missed')
  const overlap = oneOf(overlapPolicies, options.overlap, '--overlap')
  const { cron, zone, workflow, toVersion, owner, queue } = options
  return {
    ...(cron === undefined ? {} : { cron }),
    ...(zone === undefined ? {} : { zone }),
    ...(workflow === undefined ? {} : { workflow }),
    ...(toVersion === undefined ? {} : { version: toVersion }),
    ...(options.input === undefined ? {} : { input }),
    ...(owner === undefined ? {} : { owner }),
    ...(queue === undefined ? {} : { queue }),
    ...(priority === undefined ? {} : { priority }),
    ...(missed === undefined ? {} : { missed }),
    ...(overlap === undefined ? {} : { overlap }),
  }
}

const oneOf = <T extends string>(
  known: readonly T[],
  given: string | undefined,
  option: string,
): T | undefined => {
  const found = known.find((each) => each === given)
  if (given !== undefined && found === undefined)
    throw new UsageError(`${option} is ${JSON.stringify(given)}; expected ${known.join(', ')}`)
  return found
}

const HEAD = ['schedule', 'cron', 'zone', 'workflow', 'next', 'missed', 'overlap']

const cells = (each: ScheduleDetail['schedule']): string[] => [
  each.name,
  each.cron,
  each.zone,
  each.workflow,
  each.pausedAt === null ? inZone(each.nextAt, each.zone) : `paused by ${each.pausedBy}`,
  each.missed,
  each.overlap,
]

const show = ({ options, out }: Pick<Call, 'options' | 'out'>, detail: ScheduleDetail): number => {
  if (options.json) {
    out.json(detail)
    return exit.ok
  }
  const { schedule, next, ticks } = detail
  table(out, HEAD, [cells(schedule)])
  if (schedule.why !== null) out.line(`paused: ${schedule.why}`)
  if (schedule.input !== null) out.line(`input: ${short(schedule.input)}`)
  out.line()
  table(
    out,
    [schedule.pausedAt === null ? 'next' : 'next, were it not paused', `in ${schedule.zone}`],
    next.map((at) => [clock(at), inZone(at, schedule.zone)]),
  )
  if (ticks.length > 0) {
    out.line()
    table(
      out,
      ['tick', 'outcome', 'run', 'status', 'note'],
      ticks.map((each) => [
        inZone(each.tick, schedule.zone),
        each.outcome,
        each.run ?? '-',
        each.status ?? '-',
        each.note ?? '',
      ]),
    )
  }
  return exit.ok
}

/** An instant on the wall clock of a zone, with what that is ahead of UTC; on our own where this machine does not know it. */
const inZone = (at: number | null, zone: string): string => {
  if (at === null) return '-'
  if (!knows(zone)) return clock(at)
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'medium',
  })
  const offset = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'shortOffset' })
    .formatToParts(at)
    .find(({ type }) => type === 'timeZoneName')
  return `${format.format(at)} ${offset?.value ?? ''}`
}

const knows = (zone: string): boolean => {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: zone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
