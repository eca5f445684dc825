// Answers about schedules.
import { encode } from '../../kernel/json.ts'
import type { Outcome, Refusal } from '../../kernel/outcome.ts'
import type * as z from 'zod'
import type { scheduleRoutes } from '../../protocol/schedule-routes.ts'
import type {
  newSchedule,
  scheduleChange,
  scheduleDetail as detailShape,
} from '../../protocol/schedule-shapes.ts'
import type { Frozen } from '../../protocol/route.ts'
import { scheduleDetail, schedules } from '../../queries/schedules.ts'
import type { ScheduleSpec } from '../../store/tables/schedules.ts'
import {
  changeSchedule,
  createSchedule,
  deleteSchedule,
  noSchedule,
  pauseSchedule,
  resumeSchedule,
  runNow,
} from '../../transitions/set-schedule.ts'
import type { AnswersTo, Shared } from './answers.ts'
import { calendar } from '../calendar.ts'

type Detail = Frozen<z.output<typeof detailShape>>

export const scheduleAnswers = ({
  engine,
  checkInput,
}: Shared): AnswersTo<keyof typeof scheduleRoutes> => {
  const { ids } = engine.ports

  const detail = async (name: string): Promise<Detail | Refusal> =>
    (await engine.read((tx) => scheduleDetail(tx, name, calendar))) ?? noSchedule(name)

  /** The schedule as it is after what was asked, or why that was refused. */
  const shown = async (done: Promise<Outcome<{ name: string }>>): Promise<Detail | Refusal> => {
    const answer = await done
    return answer.ok ? detail(answer.name) : answer
  }

  /** An input that its workflow would refuse at each tick is refused at once. */
  const inputFault = (workflow: string, version: string | null, input: unknown): Refusal | null =>
    checkInput(engine.catalog, workflow, version, input)

  return {
    listSchedules: () => engine.read(schedules),

    async createSchedule({ body, actor, once }) {
      await engine.learn([body])
      const no = inputFault(body.workflow, body.version ?? null, body.input)
      if (no) return no
      const made = {
        id: body.id ?? ids.next('sch'),
        name: body.name,
        spec: { ...DEFAULTS, ...specOf(body) },
        paused: body.paused ?? false,
        by: actor,
      }
      return shown(once((tx, context) => createSchedule(tx, made, calendar, context)))
    },

    getSchedule: ({ params: { name } }) => detail(name),

    async changeSchedule({ params: { name }, body, actor, once }) {
      const known = await detail(name)
      if ('ok' in known) return known
      const { schedule } = known
      const workflow = body.workflow ?? schedule.workflow
      const version = body.version === undefined ? schedule.version : body.version
      await engine.learn([{ workflow, version }])
      const input = 'input' in body ? body.input : schedule.input
      const no = inputFault(workflow, version, input)
      if (no) return no
      const change = specOf(body)
      return shown(
        once((tx, context) => changeSchedule(tx, name, change, actor, calendar, context)),
      )
    },

    pauseSchedule: ({ params: { name }, body, actor, once }) =>
      shown(once((tx) => pauseSchedule(tx, name, actor, body.why ?? null))),

    resumeSchedule: ({ params: { name }, once }) =>
      shown(once((tx) => resumeSchedule(tx, name, calendar))),

    async runSchedule({ params: { name }, body, actor, once }) {
      const known = await detail(name)
      if ('ok' in known) return known
      await engine.learn([known.schedule])
      const run = body.id ?? ids.next('run')
      return once((tx, context) => runNow(tx, name, run, actor, context))
    },

    async deleteSchedule({ params: { name } }) {
      return (await engine.act((tx) => deleteSchedule(tx, name))).answer
    },
  }
}

type Body = z.output<typeof newSchedule> | z.output<typeof scheduleChange>

const DEFAULTS = {
  zone: 'UTC',
  version: null,
  input: null,
  owner: '',
  queue: null,
  labels: '[]',
  priority: 0,
  missed: 'one',
  overlap: 'allow',
} as const

/** What a body says of a schedule, and nothing of what it leaves out. */
const specOf = (body: Body): Partial<ScheduleSpec> & Pick<ScheduleSpec, 'cron' | 'workflow'> => {
  const { cron, zone, workflow, version, owner, queue, labels, priority, missed, overlap } = body
  const said = {
    cron: cron?.trim(),
    zone,
    workflow,
    version,
    owner: owner === null ? '' : owner,
    queue,
    labels: labels === undefined ? undefined : JSON.stringify([...new Set(labels ?? [])].sort()),
    priority: priority === null ? 0 : priority,
    missed,
    overlap,
    ...('input' in body ? { input: encode(body.input) } : {}),
  }
  return Object.fromEntries(
    Object.entries(said).filter(([, value]) => value !== undefined),
  ) as ReturnType<typeof specOf>
}
