// What operators look at: executors, slots, queues, definitions, sweeps, invariants.
import * as z from 'zod'
import { noticeKinds } from '../model/notice.ts'
import { sessionMachine } from '../model/session.ts'
import { id, instant, json, status, waitOn, whole, ms } from './values.ts'

export const executor = z
  .object({
    id,
    state: z.enum(sessionMachine.states),
    embedded: z.boolean(),
    host: z.string(),
    pid: whole,
    build: z.string(),
    queues: z.array(z.string()),
    labels: z.array(z.string()),
    workflows: z.array(z.object({ workflow: z.string(), version: z.string(), queue: z.string() })),
    lanes: z.array(z.string()).describe('Known lanes that it serves'),
    capacity: whole,
    held: whole,
    leaseMs: whole,
    leaseUntil: instant.nullable().describe('null: it lives as long as the owner of the file'),
    createdAt: instant,
    renewedAt: instant,
    endedAt: instant.nullable(),
    endReason: z.string().nullable(),
    evidence: z.string().nullable(),
    status: json,
  })
  .meta({ id: 'Executor' })

export const slot = z
  .object({
    key: z.string(),
    mode: z.enum(['whole_run', 'while_held']),
    value: whole.nullable().describe('In force: an operator’s beats the code’s; null is no limit'),
    codeValue: whole.nullable(),
    operatorValue: whole.nullable(),
    policy: z.enum(['queue', 'reject']),
    weight: z.number(),
    updatedBy: z.string().nullable(),
    used: whole,
    waiters: whole,
    waitersMore: z.boolean(),
  })
  .meta({ id: 'Slot', description: 'A limit, with what is held of it' })

export const slotDetail = z
  .object({
    slot,
    holders: z.array(
      z.object({
        run: z.string(),
        workflow: z.string(),
        status,
        waitOn: waitOn.nullable(),
        session: z.string().nullable(),
        since: instant,
        units: whole,
      }),
    ),
    line: z.array(
      z.object({
        run: z.string(),
        workflow: z.string(),
        place: whole,
        since: instant,
        resumed: z.boolean(),
        units: whole,
      }),
    ),
  })
  .meta({ id: 'SlotDetail' })

export const pause = z
  .object({
    kind: z.enum(['queue', 'workflow']),
    name: z.string(),
    pausedBy: z.string(),
    why: z.string().nullable(),
    pausedAt: instant,
    until: instant.nullable(),
  })
  .meta({ id: 'Pause' })

export const queue = z
  .object({
    queue: z.string(),
    depth: whole,
    more: z.boolean().describe('There are more than were counted'),
    oldestAt: instant.nullable(),
    waiting: whole.describe(
      'Runs that an executor could take now, or that are set aside since nobody serves them; without what is paused',
    ),
    oldestWaitMs: ms.describe('How long the oldest of them has waited; 0 where there is none'),
    held: whole.describe('Runs of the queue that executors hold'),
    wanted: whole.describe('Slots that the queue could use: `held` and `waiting` together'),
    executors: whole.describe('Executors that serve the queue and take what is new'),
    capacity: whole.describe('Their slots; those that serve several queues count for each'),
    free: whole.describe('Of those, how many they could fill now'),
    paused: pause.nullable(),
    lanes: z.array(
      z.object({
        lane: z.string(),
        workflow: z.string(),
        version: z.string(),
        labels: z.array(z.string()),
        depth: whole,
        more: z.boolean(),
        oldestAt: instant.nullable(),
        parked: whole,
        served: z.boolean(),
        note: z.string(),
        paused: pause.nullable(),
      }),
    ),
  })
  .meta({ id: 'Queue' })

export const workflow = z
  .object({
    name: z.string(),
    currentVersion: z.string(),
    versions: z.array(
      z.object({ version: z.string(), queue: z.string(), definition: json, served: z.boolean() }),
    ),
    paused: pause.nullable(),
  })
  .meta({ id: 'Workflow' })

export const sweep = z
  .object({
    name: z.string(),
    intervalMs: whole,
    lastAt: instant,
    examined: whole,
    acted: whole,
    skipped: whole,
    error: z.string().nullable(),
    durationMs: z.number(),
    late: z.boolean().describe('Its last pass is more than three intervals ago'),
    lateByMs: whole,
  })
  .meta({ id: 'Sweep' })

export const notice = z
  .object({
    run: z.string().describe('The run; or the session, the tick, or the order that was set aside'),
    kind: z.enum(noticeKinds),
    occurrence: z
      .string()
      .describe('Which of several of this kind and run: an attempt, an approval; else empty'),
    id: z.string().describe('What it is called wherever it is sent'),
    at: instant,
    sentence: z.string(),
    data: json,
  })
  .meta({ id: 'Notice' })

export const order = z
  .object({
    id: z.string(),
    kind: z.enum(['start', 'signal', 'cancel', 'child_ended']),
    run: z.string(),
    createdAt: instant,
    setAsideAt: instant,
    failures: whole,
    error: z.string().nullable().describe('What its last try came to'),
    payload: json,
  })
  .meta({ id: 'Order' })

export const invariant = z
  .object({
    name: z.string(),
    what: z.string(),
    figure: whole.describe('0 is good'),
    sample: z.array(z.string()),
  })
  .meta({ id: 'Invariant' })
