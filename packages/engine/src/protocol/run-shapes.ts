// Runs as people see them: the row, its history, and why it does not run.
import * as z from 'zod'
import { approvalMachine } from '../model/approval.ts'
import { attemptMachine } from '../model/attempt.ts'
import { logSources } from '../model/log.ts'
import { waitMachine } from '../model/wait.ts'
import { entryKinds } from '../model/work.ts'
import { notice } from './operations-shapes.ts'
import { id, instant, json, status, waitOn, whole } from './values.ts'

export const logLine = z
  .object({
    attempt: whole,
    n: whole.describe('Its number among all that its attempt wrote'),
    at: instant,
    source: z
      .enum(logSources)
      .describe('`log` by `ctx.log`; else what an isolated process printed'),
    text: z.string(),
    facts: json.describe('What was logged beside it, or null'),
    dropped: whole.describe('Lines of its attempt right before it that were not kept'),
  })
  .meta({ id: 'LogLine' })

export const runSummary = z
  .object({
    id,
    workflow: z.string(),
    version: z.string(),
    queue: z.string(),
    labels: z.array(z.string()),
    priority: whole,
    owner: z.string(),
    key: z.string().nullable(),
    status,
    waitOn: waitOn.nullable(),
    reason: z.string().nullable(),
    note: z.string().nullable(),
    attempt: whole,
    session: z.string().nullable(),
    leasedAt: instant.nullable(),
    entries: whole,
    journalBytes: whole,
    rev: whole,
    createdAt: instant,
    readyAt: instant.nullable(),
    progressAt: instant.nullable(),
    noProgressSince: instant
      .nullable()
      .describe('While it is held: its last new entry, or the start of this attempt'),
    endedAt: instant.nullable(),
    deadline: instant.nullable(),
    attemptDeadline: instant.nullable(),
    startBy: instant.nullable(),
    cancelRequestedAt: instant.nullable(),
    cancelBy: z.string().nullable(),
    pauseRequestedAt: instant.nullable(),
    pauseBy: z.string().nullable(),
    losses: whole,
    handBacks: whole,
    failures: whole,
    parent: z.string().nullable(),
    parentKey: z.string().nullable(),
    depth: whole,
    root: z.string(),
    children: whole,
    retryOf: z.string().nullable(),
    series: z.string(),
    onEnd: z.string().nullable(),
    onEndOf: z.string().nullable(),
    limits: z.array(z.string()),
    units: z.record(z.string(), whole).describe('Units that it takes of each of its limits'),
    progress: json.describe('What the author shows of its progress, or null'),
  })
  .meta({ id: 'Run' })

export const attempt = z
  .object({
    attempt: whole,
    session: z.string(),
    leasedAt: instant,
    endedAt: instant.nullable(),
    end: z.enum(attemptMachine.states),
    reason: z.string().nullable(),
    note: z.string().nullable(),
    firstReason: z.string().nullable(),
    rev: whole,
  })
  .meta({ id: 'Attempt', description: 'One leased try; the newest may be `held` still' })

export const entry = z
  .object({
    n: whole,
    key: z.string(),
    kind: z.enum(entryKinds),
    attempt: whole,
    rev: whole,
    at: instant,
    output: json,
    error: json,
  })
  .meta({ id: 'Entry', description: 'An outcome that the function received' })

export const wait = z
  .object({
    key: z.string(),
    kind: z.enum(['time', 'signal', 'approval', 'child', 'retry']),
    name: z.string().nullable(),
    dueAt: instant.nullable(),
    state: z.enum(waitMachine.states),
    tries: whole,
    result: json,
    error: json,
    createdAt: instant,
    settledAt: instant.nullable(),
  })
  .meta({ id: 'Wait' })

export const approval = z
  .object({
    id,
    run: z.string(),
    key: z.string(),
    prompt: z.string(),
    data: json,
    deciders: z.array(z.string()).describe('Empty: everybody'),
    deadline: instant,
    state: z.enum(approvalMachine.states),
    decidedBy: z.string().nullable(),
    decidedAt: instant.nullable(),
    reason: z.string().nullable(),
    payload: json,
    createdAt: instant,
  })
  .meta({ id: 'Approval' })

export const event = z
  .object({
    rev: whole,
    seq: whole,
    at: instant,
    kind: z.string(),
    actor: z.string().nullable(),
    data: json,
  })
  .meta({ id: 'Event', description: 'A rare fact of a run: a cancel, a reap, an operator’s act' })

export const condition = z
  .object({
    code: z.string(),
    sentence: z.string(),
    since: instant.nullable(),
    evidence: z.record(z.string(), json),
  })
  .meta({ id: 'Condition' })

export const explanation = z
  .object({
    run: id,
    status,
    now: instant,
    sentence: z.string().describe('The binding condition, in words'),
    conditions: z.array(condition).describe('The binding one first'),
  })
  .meta({ id: 'Explanation' })

export const runDetail = z
  .object({
    run: runSummary,
    input: json,
    output: json,
    error: json,
    state: json,
    attempts: z.array(attempt),
    journal: z.array(entry),
    journalNext: whole.nullable().describe('`after` of the next page of the journal'),
    waits: z.array(wait),
    approvals: z.array(approval),
    signals: z.array(
      z.object({
        id: z.string(),
        seq: whole,
        name: z.string(),
        payload: json,
        takenBy: z.string().nullable(),
      }),
    ),
    events: z.array(event),
    children: z.array(runSummary),
    receipts: z.array(
      z.object({
        kind: z.string(),
        attempt: whole,
        recipient: z.string(),
        at: instant,
        outcome: z.string(),
      }),
    ),
    notices: z.array(notice),
    series: z.array(z.object({ id, status, createdAt: instant })),
  })
  .meta({ id: 'RunDetail' })

export const runResult = z
  .object({
    run: z.string().describe('The run that ended: the newest of its series'),
    ended: z.boolean(),
    status,
    reason: z.string().nullable(),
    note: z.string().nullable(),
    output: json,
    error: json,
    endedAt: instant.nullable(),
  })
  .meta({ id: 'Result' })
