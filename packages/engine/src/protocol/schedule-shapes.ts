// Schedules as people see and set them.
import * as z from 'zod'
import { missedPolicies, overlapPolicies, tickOutcomes } from '../model/schedule.ts'
import { id, instant, json, maybe, name, status, whole } from './values.ts'

export const schedule = z
  .object({
    id,
    name: z.string(),
    cron: z.string(),
    zone: z.string(),
    workflow: z.string(),
    version: z.string().nullable().describe('null: the current one when a tick fires'),
    input: json,
    owner: z.string(),
    queue: z.string().nullable(),
    labels: z.array(z.string()),
    priority: whole,
    missed: z.enum(missedPolicies),
    overlap: z.enum(overlapPolicies),
    nextAt: instant.nullable().describe('null: it is paused, or has no tick any more'),
    lastAt: instant.nullable().describe('The tick that fired last'),
    pausedAt: instant.nullable(),
    pausedBy: z.string().nullable(),
    why: z.string().nullable(),
    createdAt: instant,
    updatedAt: instant,
    updatedBy: z.string(),
  })
  .meta({ id: 'Schedule' })

export const scheduleDetail = z
  .object({
    now: instant,
    schedule,
    next: z
      .array(instant)
      .describe('The next ten ticks; of a paused schedule those that it would have'),
    ticks: z.array(
      z.object({
        tick: instant,
        cause: z.enum(['time', 'person']),
        outcome: z.enum(tickOutcomes),
        run: z.string().nullable(),
        status: status.nullable(),
        note: z.string().nullable(),
        at: instant.describe('When it was decided'),
      }),
    ),
  })
  .meta({ id: 'ScheduleDetail' })

/** What a schedule is made of. */
const settable = {
  cron: z
    .string()
    .min(1)
    .max(200)
    .describe('Five fields (minute, hour, day, month, weekday), or six with seconds first'),
  zone: name.exactOptional().describe('A time zone such as Europe/Berlin. Default UTC'),
  workflow: name,
  version: maybe(name).describe('Default: the current one when a tick fires'),
  input: json.optional(),
  owner: maybe(z.union([name, z.literal('')])),
  queue: maybe(name),
  labels: maybe(z.array(name).max(20)),
  priority: maybe(whole.min(-100).max(100)),
  missed: z
    .enum(missedPolicies)
    .exactOptional()
    .describe(
      'What becomes of ticks whose time passed while nobody could fire them: none, the last of them, or each fires. Default one',
    ),
  overlap: z
    .enum(overlapPolicies)
    .exactOptional()
    .describe(
      'What becomes of a tick while a run of an earlier one has not ended: it starts beside it, is skipped, starts after that run was canceled, or waits for its end. Default allow',
    ),
}

export const newSchedule = z
  .strictObject({
    name,
    id: maybe(name).describe('Minted by the client, so that a repeat is safe'),
    ...settable,
    paused: z.boolean().exactOptional(),
  })
  .meta({ id: 'NewSchedule' })

export const scheduleChange = z
  .strictObject({
    ...settable,
    cron: settable.cron.exactOptional(),
    workflow: settable.workflow.exactOptional(),
  })
  .meta({ id: 'ScheduleChange', description: 'What is left out stays as it is' })
