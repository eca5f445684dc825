// Routes about runs: start, look, wait for, tell.
import * as z from 'zod'
import {
  approval,
  entry,
  explanation,
  logLine,
  runDetail,
  runResult,
  runSummary,
} from './run-shapes.ts'
import { route } from './route.ts'
import { id, inQuery, instant, json, maybe, ms, name, status, waitOn, whole } from './values.ts'

const ofRun = z.strictObject({ id })
const reason = maybe(z.string().max(2_000))

/** The engine makes ids of its own from a run's: of its approvals with a colon, of what runs at its end with `_end`. */
const runId = name.refine(
  (id) => !id.includes(':') && !/_end(?:~\d+)?$/.test(id),
  'expected an id without a colon that does not end in _end: the engine makes ids of its own so',
)

export const startBody = z
  .strictObject({
    workflow: name,
    input: json.optional(),
    id: maybe(runId).describe('The run’s id, minted by the client so that a repeat is safe'),
    command: maybe(name),
    key: maybe(name).describe('The same run for the same owner, workflow and key'),
    owner: maybe(z.union([name, z.literal('')])),
    version: maybe(name),
    queue: maybe(name),
    labels: maybe(z.array(name).max(20)),
    priority: maybe(whole.min(-100).max(100)),
    delayMs: maybe(ms),
    startAt: maybe(instant.min(0)),
    startByMs: maybe(ms),
    totalLimitMs: maybe(ms),
    attemptLimitMs: maybe(ms),
  })
  .meta({ id: 'Start' })

const started = z.object({
  id,
  started: z.boolean().describe('False: the key or the id had been used with equal input'),
  status,
})
const moved = z.object({ run: id, status })
const START_REFUSALS = [
  'unknown_workflow',
  'invalid_input',
  'key_reused',
  'limit_full',
  'payload_too_large',
  'not_serializable',
] as const

const logQuery = {
  attempt: inQuery.whole(1, 2_147_483_647).optional().describe('Default: all of them'),
  after: z
    .string()
    .regex(/^(?:\d{1,10}:)?\d{1,15}$/)
    .optional()
    .describe('Lines after this one: its number in the attempt, or `attempt:number`'),
}

export const runRoutes = {
  startRun: route({
    method: 'POST',
    path: '/v1/runs',
    summary: 'Start a run',
    group: 'runs',
    role: 'operator',
    body: startBody,
    answer: started,
    refusals: [...START_REFUSALS, 'command_reused'],
  }),
  startRuns: route({
    method: 'POST',
    path: '/v1/runs/bulk',
    summary: 'Start up to 10,000 runs, each guarded: a bad one is reported and the others start',
    group: 'runs',
    role: 'operator',
    body: z.strictObject({ items: z.array(z.unknown()).max(10_000).describe('Each a Start') }),
    answer: z.object({
      started: whole,
      answers: z.array(
        z.union([
          z.object({ ok: z.literal(true), id, started: z.boolean(), status }),
          z.object({
            ok: z.literal(false),
            code: z.string(),
            message: z.string(),
            detail: z.record(z.string(), json),
          }),
        ]),
      ),
    }),
    refusals: ['payload_too_large', 'command_reused'],
    size: 'bulk',
  }),
  listRuns: route({
    method: 'GET',
    path: '/v1/runs',
    summary: 'List runs by their ids, which follow the time they were made: newest first',
    group: 'runs',
    role: 'viewer',
    query: z.strictObject({
      status: inQuery.list(status).optional().describe('One or several, by commas'),
      workflow: z.string().optional(),
      owner: z.string().optional(),
      queue: z.string().optional(),
      label: z.string().optional(),
      waitOn: waitOn.optional(),
      reason: z.string().optional(),
      startedAfter: inQuery.instant.optional(),
      startedBefore: inQuery.instant.optional(),
      text: z.string().max(200).optional().describe('Part of the error or of the note'),
      roots: z
        .enum(['true', 'false'])
        .optional()
        .describe('`true`: only runs that no run has started, as its child or at its end'),
      cursor: z.string().max(5_000).optional(),
      limit: inQuery.whole(1, 200).default(50),
    }),
    answer: z.object({
      runs: z.array(runSummary),
      next: z
        .string()
        .nullable()
        .describe('`cursor` of the next page, which may be empty where few runs match; null ends'),
    }),
    refusals: [],
  }),
  countRuns: route({
    method: 'GET',
    path: '/v1/runs/counts',
    summary: 'Count runs by status',
    group: 'runs',
    role: 'viewer',
    answer: z.object({
      counts: z.array(
        z.object({
          status,
          count: whole,
          more: z.boolean().describe('There are more: counting stopped here'),
        }),
      ),
    }),
    refusals: [],
  }),
  getRun: route({
    method: 'GET',
    path: '/v1/runs/:id',
    summary: 'A run with its attempts, journal, waits, approvals, signals, events and family',
    group: 'runs',
    role: 'viewer',
    params: ofRun,
    answer: runDetail,
    refusals: ['not_found'],
  }),
  explainRun: route({
    method: 'GET',
    path: '/v1/runs/:id/explain',
    summary: 'Why is it not running?',
    group: 'runs',
    role: 'viewer',
    params: ofRun,
    answer: explanation,
    refusals: ['not_found'],
  }),
  readJournal: route({
    method: 'GET',
    path: '/v1/runs/:id/journal',
    summary: 'A page of a run’s journal',
    group: 'runs',
    role: 'viewer',
    params: ofRun,
    query: z.strictObject({
      after: inQuery.whole(0, 1e9).default(0),
      limit: inQuery.whole(1, 1_000).default(200),
    }),
    answer: z.object({ entries: z.array(entry), next: whole.nullable() }),
    refusals: ['not_found'],
  }),
  resultOfRun: route({
    method: 'GET',
    path: '/v1/runs/:id/result',
    summary: 'Wait for a run’s end; `ended` is false when the time is over first',
    group: 'runs',
    role: 'viewer',
    params: ofRun,
    query: z.strictObject({ waitMs: inQuery.whole(0, 60_000).default(0) }),
    answer: runResult,
    refusals: ['not_found'],
  }),
  followRun: route({
    method: 'GET',
    path: '/v1/runs/:id/events',
    summary:
      'Follow a run, and those that continue it: messages `attempt`, `entry`, `event` and `run`; resume by Last-Event-ID',
    group: 'runs',
    role: 'viewer',
    params: ofRun,
    answer: z.unknown(),
    refusals: ['not_found'],
    stream: true,
  }),
  readLogs: route({
    method: 'GET',
    path: '/v1/runs/:id/logs',
    summary: 'What the attempts of a run have written, line by line, after a line',
    group: 'runs',
    role: 'viewer',
    params: ofRun,
    query: z.strictObject({ ...logQuery, limit: inQuery.whole(1, 10_000).default(1_000) }),
    answer: z.object({
      run: id,
      lines: z.array(logLine),
      next: z
        .string()
        .nullable()
        .describe('`after` of what follows; null where there is nothing yet'),
      over: z.boolean().describe('Nothing more is written of what was asked for'),
    }),
    refusals: ['not_found'],
  }),
  followLogs: route({
    method: 'GET',
    path: '/v1/runs/:id/logs/follow',
    summary:
      'Follow what the attempts of a run write: messages `line`, and `end` when nothing more comes; resume by Last-Event-ID',
    group: 'runs',
    role: 'viewer',
    params: ofRun,
    query: z.strictObject(logQuery),
    answer: z.unknown(),
    refusals: ['not_found'],
    stream: true,
  }),
  followRuns: route({
    method: 'GET',
    path: '/v1/events',
    summary: 'Follow all runs: a message `run` for each that has changed',
    group: 'runs',
    role: 'viewer',
    answer: z.unknown(),
    refusals: [],
    stream: true,
  }),
  followStream: route({
    method: 'GET',
    path: '/v1/runs/:id/stream/:name',
    summary:
      'Follow what a run appends to one of its streams; resume by Last-Event-ID, its seq; `end` names the run that continues it',
    group: 'runs',
    role: 'viewer',
    params: z.strictObject({ id, name }),
    answer: z.unknown(),
    refusals: ['not_found'],
    stream: true,
  }),
  signalRun: route({
    method: 'POST',
    path: '/v1/runs/:id/signal',
    summary: 'Send a signal; it is kept until it is taken',
    group: 'runs',
    role: 'operator',
    params: ofRun,
    body: z.strictObject({
      name,
      payload: json.optional(),
      id: maybe(name).describe('The sender’s own id, by which duplicates are dropped'),
    }),
    answer: z.object({ run: id, id, duplicate: z.boolean() }),
    refusals: ['not_found', 'already_ended', 'signals_full', 'payload_too_large'],
  }),
  cancelRun: route({
    method: 'POST',
    path: '/v1/runs/:id/cancel',
    summary: 'Cancel: at once where nobody holds the run, else by its holder within a grace',
    group: 'runs',
    role: 'operator',
    params: ofRun,
    body: z.strictObject({ reason }),
    answer: moved,
    refusals: ['not_found', 'already_ended'],
  }),
  pauseRun: route({
    method: 'POST',
    path: '/v1/runs/:id/pause',
    summary: 'Pause: at the next end of a step or attempt where the run is held',
    group: 'runs',
    role: 'operator',
    params: ofRun,
    body: z.strictObject({ why: reason }),
    answer: moved,
    refusals: ['not_found', 'already_ended'],
  }),
  resumeRun: route({
    method: 'POST',
    path: '/v1/runs/:id/resume',
    summary: 'Resume a paused run',
    group: 'runs',
    role: 'operator',
    params: ofRun,
    body: z.strictObject({}),
    answer: moved,
    refusals: ['not_found', 'already_ended', 'not_paused'],
  }),
  retryRun: route({
    method: 'POST',
    path: '/v1/runs/:id/retry',
    summary: 'Start an ended run again as a new run, from the beginning or from a step',
    group: 'runs',
    role: 'operator',
    params: ofRun,
    body: z.strictObject({
      id: maybe(name).describe('The new run’s id'),
      from: maybe(z.string().min(1).max(2_000)).describe('Key of the step to start from'),
      version: maybe(name),
    }),
    answer: z.object({ run: id, retryOf: id, started: z.boolean() }),
    refusals: ['not_found', 'already_active', 'command_reused', 'unknown_workflow'],
  }),
  handBackRun: route({
    method: 'POST',
    path: '/v1/runs/:id/hand-back',
    summary: 'Take a run from its holder; it can be claimed again at once',
    group: 'runs',
    role: 'operator',
    params: ofRun,
    body: z.strictObject({ reason }),
    answer: z.object({ run: id, attempt: whole, status }),
    refusals: ['not_found', 'not_held'],
  }),
  moveRun: route({
    method: 'POST',
    path: '/v1/runs/:id/version',
    summary: 'Move a run that nobody holds to another version of its workflow',
    group: 'runs',
    role: 'operator',
    params: ofRun,
    body: z.strictObject({ version: name }),
    answer: z.object({ run: id, version: z.string() }),
    refusals: ['not_found', 'already_ended', 'held', 'unknown_workflow'],
  }),
  listApprovals: route({
    method: 'GET',
    path: '/v1/approvals',
    summary: 'Approvals that wait for a decision, the oldest first',
    group: 'approvals',
    role: 'viewer',
    query: z.strictObject({
      decider: z.string().optional().describe('Those that this person may decide'),
      run: z.string().optional(),
      olderThanMs: inQuery.whole(0, 1e15).optional(),
      cursor: z.string().max(5_000).optional(),
      limit: inQuery.whole(1, 200).default(50),
    }),
    answer: z.object({ approvals: z.array(approval), next: z.string().nullable() }),
    refusals: [],
  }),
  decideApproval: route({
    method: 'POST',
    path: '/v1/approvals/:id/decide',
    summary: 'Decide an approval, once and before its deadline',
    group: 'approvals',
    role: 'operator',
    params: ofRun,
    body: z.strictObject({
      decision: z.enum(['approved', 'denied']),
      reason,
      payload: json.optional(),
    }),
    answer: z.object({
      approval: id,
      run: id,
      decision: z.enum(['approved', 'denied']),
      by: z.string(),
      at: instant,
    }),
    refusals: [
      'not_found',
      'not_allowed',
      'already_ended',
      'already_decided',
      'approval_lapsed',
      'payload_too_large',
    ],
  }),
}
