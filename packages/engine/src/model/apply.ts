// What one write of an attempt does to its run: a pure function from the rows read under the lock to the rows written.
// The transition around it locks, reads, and stores exactly what comes back.
import type { Outcome, Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { AttemptEnd } from './attempt.ts'
import { isName, NAME_EXPECTED } from './definition.ts'
import type { Run } from './run.ts'
import { isTerminal, moved } from './run.ts'
import type { End } from './settle.ts'
import { settle } from './settle.ts'
import type { NewRun, PlanContext, Planned, StartCommand } from './start.ts'
import { limitRetry, limitsGiven, planStart } from './start.ts'
import type { Signal, Wait } from './wait.ts'
import { earliestDue, settleWaits, waitOnOf } from './wait.ts'
import type { AttemptWrite, ChildStart, Entry, LiveWait, WaitRecord, WriteOk } from './work.ts'

/** What was read of the run under its lock. */
export interface Found {
  readonly run: Run
  /** Waits that the function has not received, and those gone that the write names. Read only for writes that touch waits. */
  readonly waits: readonly Wait[]
  readonly signals: readonly Signal[]
  /** Tag that puts the run at the end of its priority. Read only for hand-backs that go there. */
  readonly lastTag: number | null
  /** The state that a continued run hands to its successor. Read only for those. */
  readonly state: string | null
}

export interface Applied {
  readonly before: Run
  readonly run: Run
  readonly end: AttemptEnd | null
  readonly endReason: string | null
  readonly entries: readonly Entry[]
  readonly waits: readonly Wait[]
  readonly taken: readonly Signal[]
  /** Keys of waits whose signals are read for good, and of those that let their signal go again. */
  readonly read: readonly string[]
  readonly released: readonly string[]
  readonly approvals: readonly {
    key: string
    prompt: string
    data: string | null
    deciders: readonly string[]
    deadline: number
  }[]
  /** What is noted of the attempt while it goes on: once, however often the write is repeated. */
  readonly notes: readonly { readonly kind: string; readonly data: string }[]
  readonly children: readonly Planned[]
  readonly successor: Planned | null
  readonly output: string | null
  readonly error: string | null
  /** Nothing is to be stored: the write only looked. */
  readonly idle: boolean
  readonly answer: WriteOk
}

export const liveWait = (wait: Wait): LiveWait => ({
  key: wait.key,
  kind: wait.kind,
  name: wait.name,
  dueAt: wait.dueAt,
  state: wait.state,
  result: wait.result,
  tries: wait.tries,
  error: wait.error,
})

/** Whether a write needs the run's waits and signals read beside the run. */
export const touchesWaits = (write: AttemptWrite): boolean =>
  (write.waits?.length ?? 0) > 0 ||
  (write.closes?.length ?? 0) > 0 ||
  write.end?.kind === 'suspend' ||
  write.look === true ||
  write.end?.kind === 'revoke' ||
  write.entries.some(
    (entry) => entry.kind !== 'step' && entry.kind !== 'local' && entry.kind !== 'patch',
  )

/**
 * A write that says nothing but steps, or steps and a clean result. Where its run has nothing special about it either, what
 * `applyWrite` makes of it is known without reading the run.
 */
export const isPlain = (write: AttemptWrite): boolean =>
  (write.end === undefined ? write.entries.length > 0 : write.end.kind === 'complete') &&
  write.waits === undefined &&
  write.closes === undefined &&
  write.spawns === undefined &&
  write.state === undefined &&
  write.progress === undefined &&
  write.stream === undefined &&
  write.look !== true &&
  (write.firstReason ?? null) === null &&
  write.phase === undefined &&
  write.entries.every(
    ({ n, kind }, i) =>
      (kind === 'step' || kind === 'local' || kind === 'patch') &&
      n === (write.entries[0]?.n ?? 0) + i,
  )

/**
 * Refuses a write that brings a payload over the limit, whatever its run is: an executor that does not look itself cannot
 * store one. Inputs of children are looked at where they start; what a wait came to was looked at when it came.
 */
export const payloadFault = (write: AttemptWrite, most: number): Refusal | null => {
  const over = (text: string | null | undefined): boolean =>
    // a code unit takes three bytes at most: most texts need no count
    typeof text === 'string' && text.length * 3 > most && Buffer.byteLength(text) > most
  const no = (what: string, text: string | null | undefined): Refusal => {
    const bytes = Buffer.byteLength(text ?? '')
    return refuse(
      'payload_too_large',
      `${what} has ${bytes} bytes; the limit is ${most}. Store it elsewhere and pass a reference`,
      { run: write.run, bytes, limit: most },
    )
  }
  for (const { kind, key, output } of write.entries)
    if ((kind === 'step' || kind === 'local') && over(output))
      return no(`the outcome of ${key}`, output)
  for (const { key, approval } of write.waits ?? [])
    for (const [what, text] of [
      ['data', approval?.data],
      ['prompt', approval?.prompt],
      ['list of deciders', approval?.deciders.join('\n')],
    ] as const)
      if (over(text)) return no(`the ${what} of the approval ${key}`, text)
  for (const { stream, data } of write.stream ?? [])
    if (over(data)) return no(`the item of the stream ${stream}`, data)
  if (over(write.state)) return no('the state of the run', write.state)
  if (over(write.progress)) return no('the progress of the run', write.progress)
  const result = write.end?.kind === 'complete' ? write.end.output : null
  return over(result) ? no('the result', result) : null
}

/** The waits that a write records or stands at: of these also what is gone is read, since a copy of it may come late. */
export const namedWaits = (write: AttemptWrite): { readonly run: string; readonly key: string }[] =>
  [
    ...(write.waits ?? []).map((record) => record.key),
    ...(write.end?.kind === 'suspend' ? write.end.keys : []),
  ].map((key) => ({ run: write.run, key }))

const isGone = (wait: Wait): boolean => wait.state === 'closed' || wait.state === 'taken'

export const applyWrite = (
  found: Found,
  write: AttemptWrite,
  now: number,
  context: PlanContext,
): Outcome<{ applied: Applied }> => {
  const { settings } = context
  const { run } = found
  const entries = write.entries.filter((entry) => entry.n > run.entries)
  const misnumbered = entries.find((entry, i) => entry.n !== run.entries + i + 1)
  if (misnumbered)
    return refuse(
      'invalid_request',
      `entry ${misnumbered.key} has number ${misnumbered.n} in a journal of ${run.entries}`,
      { run: run.id, entries: run.entries },
    )
  const bytes = entries.reduce(
    (sum, entry) =>
      sum + Buffer.byteLength(entry.output ?? '') + Buffer.byteLength(entry.error ?? ''),
    run.journalBytes,
  )
  if (run.entries + entries.length > settings.entriesMax || bytes > settings.journalMaxBytes)
    return refuse(
      'payload_too_large',
      `the journal would have ${run.entries + entries.length} entries and ${bytes} bytes; the limits are ${settings.entriesMax} and ${settings.journalMaxBytes}. Use continueAs`,
      { run: run.id },
    )

  const waits = new Map(found.waits.map((wait) => [wait.key, wait]))
  const dirty = new Map<string, Wait>()
  const put = (wait: Wait): void => {
    waits.set(wait.key, wait)
    dirty.set(wait.key, wait)
  }
  const read: string[] = []
  const released: string[] = []
  for (const entry of entries) {
    const wait = waits.get(entry.key)
    if (wait) put({ ...wait, state: 'taken' })
    if (entry.kind === 'signal') read.push(entry.key)
  }
  const anew = write.end?.kind === 'fail' && write.end.retryInMs !== undefined
  for (const key of write.closes ?? []) {
    const wait = waits.get(key)
    if (!wait || wait.state === 'taken') continue
    // the attempt that drives the run anew begins its steps at their first try
    put({ ...wait, state: 'closed', ...(anew && wait.kind === 'retry' ? { tries: 0 } : {}) })
    if (wait.kind === 'signal') released.push(key)
  }

  // new waits: a retry is counted again under its key, also where it was closed, since a copy that comes late counts no
  // higher; any other that stands, or is gone, is a repeat
  const approvals: Applied['approvals'][number][] = []
  const children: Planned[] = []
  let seq = run.waits
  for (const record of write.waits ?? []) {
    const known = waits.get(record.key)
    if (
      known &&
      (known.kind !== 'retry' ||
        record.kind !== 'retry' ||
        known.state === 'taken' ||
        known.tries >= (record.tries ?? 0))
    )
      continue
    if (record.kind === 'signal' && !isName(record.name))
      return refuse(
        'invalid_request',
        `the signal that ${record.key} waits for is ${JSON.stringify(record.name)?.slice(0, 80) ?? 'missing'}; expected ${NAME_EXPECTED}`,
        { run: run.id },
      )
    if (record.child) {
      const planned = planChild(run, record.key, record.child, children.length, context)
      if (!planned.ok) return planned
      children.push(planned.planned)
    }
    const wait = waitOf(run, record, known?.seq ?? ++seq, now, settings.approvalMs)
    put(wait)
    if (record.approval)
      approvals.push({
        key: record.key,
        ...record.approval,
        deadline: wait.dueAt ?? now + settings.approvalMs,
      })
  }
  for (const spawn of write.spawns ?? []) {
    if (!entries.some((entry) => entry.key === spawn.as)) continue
    const planned = planChild(run, spawn.as, spawn, children.length, context)
    if (!planned.ok) return planned
    children.push(planned.planned)
  }

  const open = [...waits.values()].filter(
    (wait) => wait.state === 'open' || wait.state === 'satisfied' || wait.state === 'lapsed',
  )
  const free = found.signals.map((signal) =>
    released.includes(signal.takenBy ?? '') ? { ...signal, takenBy: null } : signal,
  )
  const settled = settleWaits(
    open,
    free.filter((signal) => !read.includes(signal.takenBy ?? '')),
    now,
  )
  for (const wait of settled.waits) put(wait)
  const satisfied = [...waits.values()]
    .filter((wait) => wait.state === 'satisfied' || wait.state === 'lapsed')
    .map(liveWait)

  const progressed = entries.length > 0
  const next: Run = {
    ...run,
    entries: run.entries + entries.length,
    journalBytes: bytes,
    children: run.children + children.length,
    waits: seq,
    ...(progressed ? { progressAt: now, losses: 0, suspectSince: null, handBacks: 0 } : {}),
  }
  const ended = endOf(next, write, [...waits.values()], found.lastTag, context)
  const after =
    ended && ended !== 'goes_on'
      ? settle(next, ended, now, settings)
      : { run: moved(next, 'checkpoint', next.status, now), end: null }
  const last = after.run

  let successor: Planned | null = null
  if (write.end?.kind === 'continue' && last.status === 'succeeded') {
    const state = write.state === undefined ? found.state : write.state
    const planned = planSuccessor(run, write.end, state, context)
    if (!planned.ok) return planned
    successor = planned.planned
  }
  const own = write.end?.kind === 'complete' ? write.end.output : null
  const failed = write.end?.kind === 'fail' ? write.end.error : null
  const terminal = isTerminal(last.status)
  return {
    ok: true,
    applied: {
      before: run,
      run: last,
      end: after.end,
      endReason: after.end === null ? null : reasonOf(write),
      entries,
      waits: [...dirty.values()],
      taken: settled.signals,
      read,
      released,
      approvals,
      notes: after.end === null ? notesOf(run, write) : [],
      children,
      successor,
      output: terminal && last.status === 'succeeded' ? own : null,
      error:
        terminal && last.status === 'failed'
          ? (failed ??
            JSON.stringify({
              name: 'Error',
              message: last.note ?? last.reason ?? 'failed',
              code: last.reason,
            }))
          : null,
      idle: write.look === true && entries.length === 0 && dirty.size === 0 && after.end === null,
      answer: {
        ok: true,
        rev: last.rev,
        directive:
          last.status === 'canceling' ? 'cancel' : last.pauseRequestedAt !== null ? 'pause' : null,
        note: last.note,
        ended: after.end === null ? null : last.status,
        satisfied: after.end === null ? satisfied : [],
      },
    },
  }
}

/** A phase is refused to a run that is being canceled: the store's cancel was first. A first reason is kept beside it. */
const notesOf = (run: Run, { phase, firstReason }: AttemptWrite): Applied['notes'] => {
  const { attempt } = run
  return [
    ...(phase !== undefined && run.status === 'running'
      ? [{ kind: `attempt.${phase}`, data: JSON.stringify({ attempt }) }]
      : []),
    ...(firstReason
      ? [{ kind: 'attempt.stopping', data: JSON.stringify({ attempt, firstReason }) }]
      : []),
  ]
}

const reasonOf = (write: AttemptWrite): string | null => {
  const end = write.end
  return end && 'reason' in end ? end.reason : end?.kind === 'continue' ? 'continued' : null
}

const waitOf = (
  run: Run,
  record: WaitRecord,
  seq: number,
  now: number,
  approvalMs: number,
): Wait => ({
  run: run.id,
  key: record.key,
  seq,
  kind: record.kind,
  name: record.child
    ? record.child.id
    : record.approval
      ? approvalId(run.id, record.key)
      : (record.name ?? null),
  dueAt:
    record.dueAt ??
    (record.dueInMs !== undefined
      ? now + record.dueInMs
      : record.approval
        ? now + approvalMs
        : null),
  state: 'open',
  result: null,
  tries: record.tries ?? 0,
  error: record.error ?? null,
})

export const approvalId = (run: string, key: string): string => `${run}:${key}`

const planChild = (
  run: Run,
  key: string,
  child: ChildStart,
  already: number,
  context: PlanContext,
): Outcome<{ planned: Planned }> => {
  if (run.children + already >= context.settings.childrenMax)
    return refuse(
      'fan_out_limit',
      `${run.id} has started ${run.children + already} children; the limit is ${context.settings.childrenMax}`,
      { run: run.id },
    )
  return planStart(
    child,
    {
      family: {
        parent: run.id,
        parentKey: key,
        awaited: child.awaited,
        onParentEnd: child.onParentEnd,
        depth: run.depth,
        root: run.root,
        owner: run.owner,
      },
    },
    context,
  )
}

/** A continued run's successor keeps owner, queue, labels, priority and family, and takes the current version. */
const planSuccessor = (
  run: Run,
  end: { input: string | null; runId: string },
  state: string | null,
  context: PlanContext,
): Outcome<{ planned: Planned }> => {
  const command: StartCommand = {
    id: end.runId,
    workflow: run.workflow,
    input: end.input,
    owner: run.owner,
    queue: run.queue,
    labels: run.labels,
    priority: run.priority,
    ...limitsGiven(run, context.catalog),
  }
  const outcome = planStart(
    command,
    {
      continues: { series: run.series, state },
      ...(run.onEndOf === null ? {} : { onEndOf: run.onEndOf }),
    },
    context,
  )
  if (!outcome.ok) return outcome
  const { planned } = outcome
  const same =
    run.limitOwner === planned.run.limit_owner &&
    run.limitGlobal === planned.run.limit_global &&
    run.limitA === planned.run.limit_a &&
    run.limitB === planned.run.limit_b &&
    planned.run.units_a <= run.unitsA &&
    planned.run.units_b <= run.unitsB
  const row: NewRun = {
    ...planned.run,
    tag: run.tag,
    root: run.root,
    depth: run.depth,
    parent: run.parent,
    parent_key: run.parentKey,
    awaited: run.awaited,
    on_parent_end: run.onParentEnd,
    // it inherits the slots: only one with other limits, or that takes more of them, lines up
    ...(same || planned.run.limit_modes === ''
      ? {}
      : { status: 'waiting' as const, wait_on: 'slot' as const, reason: 'limit' }),
    // a pause that was asked is of the series
    ...(run.pauseRequestedAt === null
      ? {}
      : {
          status: 'paused' as const,
          reason: 'paused',
          note: run.pauseBy === null ? null : `paused by ${run.pauseBy}`,
          pause_requested_at: run.pauseRequestedAt,
          pause_by: run.pauseBy,
        }),
  }
  return { ok: true, planned: { ...planned, run: row } }
}

/** What an attempt whose first reason is a limit cannot end as: the limit comes first (RUN-17). */
const outranked: readonly string[] = [
  'complete',
  'continue',
  'suspend',
  'hand_back',
  'park',
  'lose',
]
const limitNotes = {
  time_limit: 'the run’s total limit has passed',
  attempt_deadline: 'the attempt’s limit has passed',
}

/** How this write ends its attempt: an end, null when it does not, or `goes_on` when a wait that it stands at is satisfied. */
const endOf = (
  run: Run,
  write: AttemptWrite,
  waits: readonly Wait[],
  lastTag: number | null,
  { catalog }: PlanContext,
): End | null | 'goes_on' => {
  const end = write.end
  if (!end) return null
  const first = write.firstReason ?? null
  if (first === 'stale' && end.kind !== 'stale')
    return { kind: 'stale', note: 'the context that the attempt captured has changed' }
  if ((first === 'time_limit' || first === 'attempt_deadline') && outranked.includes(end.kind))
    return {
      kind: 'fail',
      reason: first,
      note: limitNotes[first],
      ...(first === 'attempt_deadline' ? limitRetry(run, catalog) : {}),
    }
  switch (end.kind) {
    case 'complete':
      return { kind: 'complete' }
    case 'continue':
      return { kind: 'complete', continued: true }
    case 'fail':
      return end
    case 'park':
      return end
    case 'stale':
      return end
    case 'lose':
      return end
    case 'hand_back': {
      const tag =
        end.toEnd === true && lastTag !== null ? Math.max(run.tag, lastTag + 1) : undefined
      return tag === undefined
        ? { kind: 'hand_back', reason: end.reason }
        : { kind: 'hand_back', reason: end.reason, tag }
    }
    case 'revoke':
      return { kind: 'revoke', reason: end.reason, note: end.note, outcome: 'requeue' }
    case 'suspend': {
      // a copy of an earlier suspend that comes late: the function has gone on from there
      if (waits.some((wait) => isGone(wait) && end.keys.includes(wait.key))) return 'goes_on'
      const live = waits.filter(
        (wait) => wait.state === 'open' || wait.state === 'satisfied' || wait.state === 'lapsed',
      )
      const named = end.keys.map((key) => live.find((wait) => wait.key === key))
      const stray = live.find((wait) => !end.keys.includes(wait.key))
      if (stray)
        return {
          kind: 'park',
          reason: 'nondeterminism',
          note: `the journal waits at ${stray.key} (${stray.kind}), where no branch of the function stands`,
        }
      const missing = end.keys.find((_key, i) => named[i] === undefined)
      if (missing !== undefined)
        return {
          kind: 'park',
          reason: 'nondeterminism',
          note: `the function stands at ${missing}, which is not recorded as a wait`,
        }
      const standing = named.filter((wait) => wait !== undefined)
      if (
        run.status === 'running' &&
        run.pauseRequestedAt === null &&
        standing.some((wait) => wait.state !== 'open')
      )
        return 'goes_on'
      const first = [...standing].sort((a, b) => a.seq - b.seq)[0]
      if (!first)
        return {
          kind: 'park',
          reason: 'nondeterminism',
          note: 'the function stands at nothing that could wake it',
        }
      return {
        kind: 'suspend',
        waitOn: waitOnOf(first.kind),
        readyAt: earliestDue(standing.filter((wait) => wait.state === 'open')),
      }
    }
  }
}
