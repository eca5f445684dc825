// Routes of schedules.
import * as z from 'zod'
import { route } from './route.ts'
import { newSchedule, schedule, scheduleChange, scheduleDetail } from './schedule-shapes.ts'
import { id, instant, maybe, name } from './values.ts'

const params = z.strictObject({ name })
const SPEC_REFUSALS = ['unknown_workflow', 'invalid_input', 'payload_too_large'] as const

export const scheduleRoutes = {
  listSchedules: route({
    method: 'GET',
    path: '/v1/schedules',
    summary: 'Schedules, by their names',
    group: 'schedules',
    role: 'viewer',
    answer: z.object({ now: instant, schedules: z.array(schedule) }),
    refusals: [],
  }),
  createSchedule: route({
    method: 'POST',
    path: '/v1/schedules',
    summary: 'Make a schedule, which starts runs of a workflow by a cron expression',
    group: 'schedules',
    role: 'operator',
    body: newSchedule,
    answer: scheduleDetail,
    refusals: [...SPEC_REFUSALS, 'schedule_exists', 'command_reused'],
  }),
  getSchedule: route({
    method: 'GET',
    path: '/v1/schedules/:name',
    summary: 'A schedule with its next ten ticks, and what became of the newest',
    group: 'schedules',
    role: 'viewer',
    params,
    answer: scheduleDetail,
    refusals: ['not_found'],
  }),
  changeSchedule: route({
    method: 'POST',
    path: '/v1/schedules/:name',
    summary: 'Change a schedule; what is left out stays as it is',
    group: 'schedules',
    role: 'operator',
    params,
    body: scheduleChange,
    answer: scheduleDetail,
    refusals: [...SPEC_REFUSALS, 'not_found', 'command_reused'],
  }),
  pauseSchedule: route({
    method: 'POST',
    path: '/v1/schedules/:name/pause',
    summary: 'Pause a schedule: it has no ticks until it is resumed',
    group: 'schedules',
    role: 'operator',
    params,
    body: z.strictObject({ why: maybe(z.string().max(2_000)) }),
    answer: scheduleDetail,
    refusals: ['not_found', 'command_reused'],
  }),
  resumeSchedule: route({
    method: 'POST',
    path: '/v1/schedules/:name/resume',
    summary: 'Resume a schedule from the next tick after now',
    group: 'schedules',
    role: 'operator',
    params,
    body: z.strictObject({}),
    answer: scheduleDetail,
    refusals: ['not_found', 'not_paused', 'command_reused'],
  }),
  runSchedule: route({
    method: 'POST',
    path: '/v1/schedules/:name/run',
    summary: 'Start the run of a schedule now, beside its ticks',
    group: 'schedules',
    role: 'operator',
    params,
    body: z.strictObject({ id: maybe(name).describe('The run’s id, so that a repeat is safe') }),
    answer: z.object({ name: z.string(), run: id }),
    refusals: ['not_found', ...SPEC_REFUSALS, 'limit_full', 'key_reused', 'command_reused'],
  }),
  deleteSchedule: route({
    method: 'DELETE',
    path: '/v1/schedules/:name',
    summary: 'Delete a schedule; runs that it has started go on',
    group: 'schedules',
    role: 'operator',
    params,
    answer: z.object({ name: z.string() }),
    refusals: ['not_found'],
  }),
}
