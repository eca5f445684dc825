// Bugs of one line, each put into a copy of the source and hunted by the simulator: the measure of the simulator. The
// product knows nothing of them.
export interface Edit {
  /** Path under `packages/engine/src`. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface Bug extends Edit {
  readonly name: string
  /** A second guard of the same promise, which would hide the first. */
  readonly also?: Edit
  /** The promise that it breaks. */
  readonly why: string
  /** Faults within which it must be found, where not within `BUDGET`. */
  readonly budget?: number
}

export const BUDGET = 200_000

const bug = (name: string, file: string, find: string, replace: string, why: string): Bug => ({
  name,
  file,
  find,
  replace,
  why,
})

export const bugs: readonly Bug[] = [
  bug(
    'fence-attempt',
    'transitions/write.ts',
    'run !== undefined && run.attempt === attempt && run.session === session',
    'run !== undefined && run.session === session',
    'RUN-07 a write is not held against its attempt',
  ),
  bug(
    'fence-state-only',
    'transitions/write.ts',
    'run !== undefined && run.attempt === attempt && run.session === session',
    `run !== undefined && run.status === 'running'`,
    'RUN-07 a write is held against the status alone',
  ),
  bug(
    'plain-fence',
    'store/move.ts',
    "r.attempt = b.attempt and r.session = b.session and r.status = 'running'",
    "r.status = 'running'",
    'RUN-07 a plain write is held against the status alone',
  ),
  bug(
    'plain-keeps-losses',
    'store/move.ts',
    'losses = 0, suspect_since = null, hand_backs = 0',
    'suspect_since = null',
    'RUN-12 a plain write with new entries does not reset the count of losses',
  ),
  bug(
    'plain-over-a-parent',
    'store/move.ts',
    'and (r.parent is null or r.awaited = 0)',
    '',
    'RAIL-03 a child that ends plainly tells its parent nothing',
  ),
  bug(
    'again-beside-its-series',
    'transitions/retry.ts',
    "run.reason === 'continued' ? ((yield* lockCurrent(run.id)) ?? run) : run",
    'run',
    'RUN-20 a run is started again while the series that it began goes on',
  ),
  {
    ...bug(
      'fence-session',
      'transitions/end-attempts.ts',
      '(item.attempt !== null && before.attempt !== item.attempt) ||',
      'false ||',
      'RUN-09 a listed hand-back touches a hold that came later',
    ),
    also: {
      file: 'store/tables/runs.ts',
      find: 'select r.id as run, r.attempt from {rows $1 as b: run text, attempt int} join runs r on r.id = b.run and r.attempt = b.attempt and r.session = $2',
      replace:
        'select r.id as run, b.attempt from {rows $1 as b: run text, attempt int} join runs r on r.id = b.run and r.session = $2',
    },
  },
  {
    ...bug(
      'claim-no-session',
      'store/tables/sessions.ts',
      `where id = $1 and state = 'live' and claim_no < $2`,
      'where id = $1 and claim_no < $2',
      'RUN-05 a claim does not ask whether its session lives',
    ),
    also: {
      file: 'store/move.ts',
      find: `and s.claim_no = $2 and s.state = 'live')`,
      replace: 'and s.claim_no = $2)',
    },
  },
  bug(
    'claim-paused-queue',
    'store/move.ts',
    '(p.until is null or p.until > {now}) and ((p.kind',
    'p.until is null and ((p.kind',
    'RUN-16 a queue that is paused until an instant is claimed from',
  ),
  bug(
    'claim-number',
    'transitions/claim.ts',
    'const repeated = numbered.length === 0',
    'const repeated = false',
    'RUN-10 a second copy of a claim claims anew',
  ),
  bug(
    'hand-back-charged',
    'model/settle.ts',
    'if (BLAMELESS.includes(end.reason)) return requeued(run, now, place)',
    'if (BLAMELESS.includes(end.reason)) return requeued(run, now, { ...place, failures: run.failures + 1 })',
    'S4 a hand-back spends the retry budget',
  ),
  bug(
    'reap-early',
    'store/tables/sessions.ts',
    's.lease_until < {now} and s.lease_until < $1',
    's.lease_until < {now} + 4000 and $1 > 0',
    'S14 a session is ended before its lease has lapsed',
  ),
  bug(
    'reap-by-jumped-clock',
    'store/tables/sessions.ts',
    's.lease_until < {now} and s.lease_until < $1',
    's.lease_until < {now} and $1 > 0',
    'S14 a clock that jumps between look and act ends sessions',
  ),
  bug(
    'reap-ignores-jumps',
    'maintenance/reap-sessions.ts',
    'if (stalled || vague || jumped) {',
    'if (stalled || vague) {',
    'RUN-11 a jump of the clock is taken for elapsed time',
  ),
  bug(
    'losses-kept',
    'model/apply.ts',
    '{ progressAt: now, losses: 0, suspectSince: null, handBacks: 0 }',
    '{ progressAt: now, suspectSince: null, handBacks: 0 }',
    'RUN-12 a new entry does not reset the count of losses',
  ),
  bug(
    'losses-reset-by-any-write',
    'store/move.ts',
    'losses = b.losses,\n          suspect_since = b.suspect_since, hand_backs = b.hand_backs, children',
    'losses = 0,\n          suspect_since = null, hand_backs = 0, children',
    'RUN-12 a write without an entry counts as progress',
  ),
  bug(
    'suspect-not-alone',
    'store/move.ts',
    'and not exists (select 1 from runs h where h.session = $1 and h.suspect_since is not null)',
    '',
    'RUN-12 a session that holds a suspect run claims others',
  ),
  bug(
    'cancel-lost-at-settlement',
    'model/settle.ts',
    `if (run.status === 'canceling')`,
    `if (run.status === 'canceling' && end.kind !== 'hand_back' && end.kind !== 'suspend')`,
    'RUN-14 a cancel is lost to a hand-back or suspend',
  ),
  bug(
    'cancel-lost-at-reap',
    'model/settle.ts',
    `if (run.status === 'canceling')`,
    `if (run.status === 'canceling' && end.kind !== 'expire' && end.kind !== 'lose')`,
    'RUN-14 a cancel is lost to a reap',
  ),
  bug(
    'cancel-grace',
    'transitions/enforce-limits.ts',
    `run.cancelRequestedAt <= now - settings.cancelGraceMs`,
    'run.cancelRequestedAt <= now - settings.cancelGraceMs - 600_000',
    'RUN-14 a body that does not hear holds its canceled run for ever',
  ),
  bug(
    'end-overwritten',
    'transitions/cancel.ts',
    'if (isTerminal(run.status))',
    `if (run.status === 'canceled')`,
    'RUN-03 a cancel is tried on a run that has ended',
  ),
  bug(
    'slot-kept-by-parent',
    'model/slots.ts',
    `return waitOn === 'child' || waitOn === 'slot' ? 0 : 1`,
    `return waitOn === 'slot' ? 0 : 1`,
    'SLOT-02 a parent that waits goes on without its slot being counted',
  ),
  bug(
    'slot-resumed-unasked',
    'model/slots.ts',
    `(!run.limitModes.includes('h') || holds(state, 'while_held'))`,
    'state > 0',
    'SLOT-03 a run resumes without the slot that it had freed',
  ),
  bug(
    'admit-over-limit',
    'transitions/admit.ts',
    'value === null || used + wanted <= value',
    'value === null || used <= value',
    'S5 admission gives one slot too many',
  ),
  bug(
    'admit-counts-once',
    'transitions/admit.ts',
    'for (const use of mine) units.set(use.key, (units.get(use.key) ?? 0) + use.units)',
    '',
    'S5 a batch of admissions is not counted within itself',
  ),
  bug(
    'start-over-limit',
    'transitions/start.ts',
    'inLine.has(key) || !fits(limits.get(key), units.get(key) ?? 0, wanted)',
    'inLine.has(key)',
    'S5 a start is held back only by those in line',
  ),
  bug(
    'start-passes-the-line',
    'transitions/start.ts',
    'inLine.has(key) || !fits(limits.get(key), units.get(key) ?? 0, wanted)',
    '!fits(limits.get(key), units.get(key) ?? 0, wanted)',
    'SLOT-03 a start takes the slot that others wait for',
  ),
  bug(
    'start-uncounted',
    'transitions/start.ts',
    'units.set(limit.key, (units.get(limit.key) ?? 0) + limit.units)',
    '',
    'S5 starts of one batch are not counted within it',
  ),
  bug(
    'freed-slot-untold',
    'maintenance/admit-waiting.ts',
    'if (now - allAt >= 1_000) {',
    'if (now - allAt >= 600_000) {',
    'SLOT-03 lines are looked at only when somebody tells of them',
  ),
  bug(
    'waits-left-open',
    'store/consequences.ts',
    'if (waited.length > 0) statements.push(closeWaits(waited), cancelApprovals(waited))',
    '',
    'RUN-15 an end leaves waits and approvals open',
  ),
  bug(
    'parent-untold-of-cancel',
    'store/consequences.ts',
    `run.parent !== null && run.awaited === 1 && run.reason !== 'continued'`,
    `run.parent !== null && run.awaited === 1 && run.reason !== 'continued' && run.status !== 'canceled'`,
    'S8 a parent is not told of a canceled child',
  ),
  bug(
    'reconciler-tells-of-continued',
    'store/tables/runs.ts',
    `and r.ended_at is not null and coalesce(r.reason, '') <> 'continued'`,
    'and r.ended_at is not null',
    'S8 the end of one run of a series is told as the end of the series',
  ),
  bug(
    'children-forgotten',
    'store/tables/orders.ts',
    `and r.on_parent_end = 'cancel' and r.status <> 'canceling'`,
    `and r.on_parent_end = 'cancel' and r.status = 'running'`,
    'RUN-15 only children at work end with their parent',
  ),
  bug(
    'signal-taken-twice',
    'model/wait.ts',
    'unread.splice(at, 1)',
    'unread.splice(at, 0)',
    'RUN-30 one signal satisfies two waits',
  ),
  bug(
    'signal-lost-in-race',
    'model/apply.ts',
    `if (wait.kind === 'signal') released.push(key)`,
    '',
    'RUN-30 a signal is lost with the wait that lost its race',
  ),
  bug(
    'signal-order',
    'model/wait.ts',
    'filter((signal) => signal.takenBy === null).sort((a, b) => a.seq - b.seq)',
    'filter((signal) => signal.takenBy === null).sort((a, b) => b.seq - a.seq)',
    'RUN-30 the last signal is received first',
  ),
  bug(
    'signal-duplicate-in-series',
    'store/tables/waits.ts',
    'and (g.run = $1 or g.run = $2 or',
    'and (g.run = $1 or $2 is null or',
    'RUN-30 a signal that was sent again reaches the run that continues',
  ),
  bug(
    'timer-early',
    'model/wait.ts',
    'wait.dueAt !== null && wait.dueAt <= now)',
    'wait.dueAt !== null && wait.dueAt <= now + 300)',
    'S12 a timer fires early',
  ),
  bug(
    'decision-late',
    'transitions/decide.ts',
    'const late = tx.now >= asked.deadline',
    'const late = false',
    'S10 a decision is taken after its deadline',
  ),
  bug(
    'decision-twice',
    'transitions/decide.ts',
    `if (asked.state !== 'open') return`,
    `if (asked.state === 'lapsed') return`,
    'S10 a second decision is acknowledged',
  ),
  bug(
    'key-unchecked',
    'transitions/start.ts',
    'if (row.input_hash !== run.input_hash || row.workflow !== run.workflow)',
    'if (row.workflow !== run.workflow)',
    'RUN-18 a key with another input is answered as if it were the same',
  ),
  bug(
    'entries-unnumbered',
    'model/apply.ts',
    'const entries = write.entries.filter((entry) => entry.n > run.entries)',
    'const entries = write.entries',
    'RUN-24 a repeated write records its entries again',
  ),
  bug(
    'end-without-entries',
    'transitions/write.ts',
    'insertSteps(steps),',
    'insertSteps(ended.length === 0 ? steps : []),',
    'RUN-25 an end is stored without the entries that came with it',
  ),
  bug(
    'pause-lost',
    'model/settle.ts',
    'paused(run, now, null, null, patch) ??',
    '',
    'RUN-16 a pause is lost when the run is let go',
  ),
  bug(
    'resume-blind',
    'transitions/pause.ts',
    `live.some((wait) => wait.state !== 'open') ||`,
    '',
    'RUN-16 a resumed run waits for what has come',
  ),
  bug(
    'suspend-blind',
    'model/apply.ts',
    `standing.some((wait) => wait.state !== 'open')`,
    'false',
    'RUN-28 a run suspends at a wait that is satisfied',
  ),
  bug(
    'wake-deaf',
    'transitions/signal.ts',
    'satisfied.length > 0 && standsAtWaits(run)',
    `satisfied.length > 0 && run.waitOn === 'signal'`,
    'RUN-28 decisions and ends of children wake nobody',
  ),
  bug(
    'poll-off',
    'orchestrator/upkeep.ts',
    'for (const { lane } of queued) engine.hub.lane(lane)',
    '',
    'L3 nobody looks when no wake-up came (executors look for themselves after their wait)',
  ),
  bug(
    'poll-and-refresh-off',
    'orchestrator/lanes.ts',
    'for (const lane of withWork) stateOf(lane).maybe = true',
    'void withWork',
    'L3 a lane whose wake-up was lost is never looked at again',
  ),
  bug(
    'wake-poll-off',
    'maintenance/wake-due.ts',
    'intervalMs: 1_000',
    'intervalMs: 3_600_000',
    'L6 timers fire only when somebody tells of them',
  ),
  bug(
    'orders-kept',
    'store/tables/orders.ts',
    'delete from orders where id in (select p.id from pick p) returning id',
    'update orders set tries = tries + 1 where id in (select p.id from pick p) returning id',
    'S7 an order stays and is applied again',
  ),
  bug(
    'unknown-here-all',
    'orchestrator/executor-port.ts',
    'const unknown = here.filter(({ run, attempt }) => !theirs.has(`${run}#${attempt}`))',
    'const unknown = here.filter(({ run }) => theirs.size > 0 || run !== null)',
    'RUN-10 a list hands back what it names',
  ),
  bug(
    'continue-loses-signals',
    'store/tables/waits.ts',
    'update signals set run = $2, taken_by = null where run = $1 and read_at is null returning id',
    'update signals set run = $2, taken_by = null where run = $1 and read_at is null and taken_by is null returning id',
    'RUN-34 a signal that was paired when the run continued is lost',
  ),
  {
    ...bug(
      'late-copy-reopens',
      'model/apply.ts',
      '(isGone(known) ||',
      '(false ||',
      'RUN-28 a late copy of a write counts a retry again that is over',
    ),
    // a copy counts no try that the first had not counted
    also: {
      file: 'model/apply.ts',
      find: 'known.tries >= (record.tries ?? 0)',
      replace: 'known.tries > (record.tries ?? 0)',
    },
  },
  bug(
    'late-suspend-parks',
    'model/apply.ts',
    `if (waits.some((wait) => isGone(wait) && end.keys.includes(wait.key))) return 'goes_on'`,
    '',
    'RUN-26 a late copy of a suspend parks its run',
  ),
  bug(
    'limit-unenforced',
    'transitions/enforce-limits.ts',
    'run.attemptDeadline !== null && run.attemptDeadline <= now - settings.limitGraceMs',
    'run.attemptDeadline !== null && run.attemptDeadline <= now - 600_000',
    'RUN-13 the limit of an attempt is nobody’s',
  ),
  bug(
    'lost-race-keeps-retry',
    'executor/branches.ts',
    'for (const key of this.#retried ?? []) if (key.startsWith(prefix)) lost.add(key)',
    '',
    'RUN-26 a race leaves the retry of its loser open',
  ),
  bug(
    'slot-freed-early',
    'model/job.ts',
    'job.left && job.bodies === 0',
    'job.left',
    'EX-10 a slot is free when its attempt has left, though a body is at work',
  ),
  bug(
    'later-reason-wins',
    'model/job.ts',
    `  if (job.reason !== null || job.left || job.phase === 'settling' || job.phase === 'settled')
    return false
  job.reason = reason
  job.note = note
  moveJob(job, 'end', 'settling')
`,
    `  if (job.left || job.phase === 'settled') return false
  job.reason = reason
  job.note = note
  endJob(job)
`,
    'EX-09 a later reason to stop overwrites the first',
  ),
  bug(
    'reservation-kept',
    'executor/polling.ts',
    `      coordinator.release(room)
      continue
`,
    `      if (answer.runs.length > 0) coordinator.release(room)
      continue
`,
    'EX-03 a claim that brings nothing keeps what it reserved',
  ),
  bug(
    'context-unchecked',
    'model/launch.ts',
    'if (context && context.captured !== context.current)',
    'if (context && context.current === null)',
    'EX-06 a function is launched though its context has changed since it was captured',
  ),
  bug(
    'unsaved-unmarked',
    'executor/attempts.ts',
    "left.kind === 'dropped' && left.unsaved",
    "left.kind === 'dropped' && left.unsaved === 'start'",
    'EX-14 a result that could not be saved leaves no marker, and its slot is free',
  ),
  bug(
    'stop-waits-for-nothing',
    'executor/draining.ts',
    'await within(timers, drainMs, Promise.all([allLeft, polling]))',
    'void Promise.all([allLeft, polling])',
    'EX-17 a stop aborts what is at work instead of letting its step end',
  ),
  bug(
    'poll-past-the-drain',
    'executor/draining.ts',
    'await within(timers, drainMs, Promise.all([allLeft, polling]))',
    'await within(timers, drainMs, allLeft)\n  await polling',
    'EX-17 a stop waits for the poll in progress beyond its limit',
  ),
  bug(
    'hands-back-another',
    'executor/polling.ts',
    "void handBack(core, of, run, 'shutdown')",
    "void handBack(core, of, answer.runs[0] ?? run, 'shutdown')",
    'EX-17 another run than the one that came is handed back',
  ),
  bug(
    'hand-back-throws',
    'executor/wire.ts',
    '    of.letGo.push({ run, attempt, reason })',
    '    throw error',
    'EX-19 a hand-back that fails throws where nobody hears of it',
  ),
  bug(
    'hand-back-retries',
    'executor/wire.ts',
    '    of.letGo.push({ run, attempt, reason })',
    '    await handBack(core, of, { run, attempt }, reason, firstReason)',
    'EX-19 a hand-back that fails is asked for again',
  ),
  {
    ...bug(
      'offered-twice',
      'orchestrator/offers.ts',
      'except: [...request.except, ...out.keys()]',
      'except: [...request.except]',
      'RAIL-12 one run is offered to two at once',
    ),
    also: {
      file: 'orchestrator/offers.ts',
      find: 'rows.filter(({ id }) => !out.has(id))',
      replace: 'rows.filter(({ id }) => id !== null)',
    },
  },
  bug(
    'older-connection-heard',
    'orchestrator/newest-connections.ts',
    'row.connection === connection',
    'row.connection >= connection',
    'RAIL-13 what comes over an older connection of a session is still heard',
  ),
  bug(
    'any-number-connects',
    'store/tables/sessions.ts',
    'and (connection < $2 or ($2 = 1 and connection = 1))',
    '',
    'RAIL-13 a connection takes a session over under a number that has been used',
  ),
  bug(
    'group-left-alive',
    'executor/isolated.ts',
    `      await this.#gone(body)
      await scratch?.forgetProcess(label)`,
    `      await scratch?.forgetProcess(label)`,
    'EX-24 the slot of an isolated attempt is free when its process has exited, whatever that left alive',
  ),
  bug(
    'recovery-by-note',
    'executor/recovery.ts',
    'while (await processes.isAlive({ leader, label })) {',
    'while (false) {',
    'EX-26 a start forgets what an earlier life noted, and does not look whether it is alive',
  ),
  bug(
    'process-unnoted',
    'executor/isolated.ts',
    'await scratch?.noteProcess(label, body.group.leader)',
    '',
    'EX-26 a process is not written down, so that the next start does not find it',
  ),
  {
    ...bug(
      'hung-process-kept',
      'executor/isolated.ts',
      'body !== null && time.mono() - this.#heardAt >= limitMs',
      'body !== null && time.mono() - this.#heardAt >= limitMs * 1e6',
      'EX-26 a process that answers no ping is left alone',
    ),
    // few processes hang in a world, and most of those are ended for another reason first
    budget: 600_000,
  },
  bug(
    'lines-of-the-latest',
    'store/tables/logs.ts',
    'select b.run, b.attempt, b.n, b.upto,',
    'select b.run, (select r.attempt from runs r where r.id = b.run), b.n, b.upto,',
    'EX-25 late lines are kept under the attempt that holds the run now',
  ),
  bug(
    'tick-without-cas',
    'store/tables/schedules.ts',
    'where id = $1 and rev = $2 and next_at = $3 and cast($6 as bigint) <= {now} returning id',
    'where id = $1 and cast($6 as bigint) > 0 returning id',
    'RAIL-16 a tick is fired by who saw it due, whatever became of its schedule since',
  ),
  bug(
    'tick-fires-again',
    'store/tables/schedules.ts',
    ` where ticks.outcome = 'missed' returning id`,
    ` returning id`,
    'RAIL-16 a clock that goes back fires ticks again',
  ),
  bug(
    'missed-tick-lost',
    'model/schedule.ts',
    'return { fire: last, missed: { first: due, last: ticks.newest(last - 1) ?? due }, next }',
    'return { fire: null, missed: { first: due, last: ticks.newest(last - 1) ?? due }, next }',
    'RAIL-16 of the ticks that were missed the last one is lost',
  ),
  bug(
    'overlap-unseen',
    'model/schedule.ts',
    'const free = active.length === 0 && waiting === 0',
    'const free = waiting === 0',
    'RAIL-16 a tick starts beside a run that its policy does not let it',
  ),
  bug(
    'delivery-unfenced',
    'store/tables/deliveries.ts',
    `deliveries.id = b.id and deliveries.claim = b.claim and deliveries.state = 'sending'`,
    `deliveries.id = b.id and deliveries.state = 'sending'`,
    'RAIL-02 what a server records of a delivery is not held against its claim',
  ),
  bug(
    'delivery-claimed-early',
    'store/tables/deliveries.ts',
    'd.${OPEN} and (d.due_at <= {now} or d.due_at > {now} + $2)',
    'd.${OPEN} and (d.holder is not null or d.due_at <= {now} or d.due_at > {now} + $2)',
    'RAIL-02 a delivery is claimed while another server is sending it',
  ),
  bug(
    'delivery-out-of-order',
    'store/tables/deliveries.ts',
    'and not exists (select 1 from deliveries e where e.run = d.run and e.sink = d.sink and e.${OPEN} and (e.seq < d.seq or (e.seq = d.seq and e.id < d.id)))',
    '',
    'RAIL-02 the notices of one run are not sent in their order',
  ),
  bug(
    'delivery-without-receipt',
    'transitions/deliver.ts',
    'receiptsFor([...taken, ...never],',
    'receiptsFor([...never],',
    'RAIL-04 a delivery is settled without its receipt',
  ),
  bug(
    'delivery-by-silence',
    'maintenance/relay.ts',
    ': { ok: false, why: `it did not answer within ${deliveryTimeoutMs} ms` }',
    ': { ok: true, note: `it did not answer within ${deliveryTimeoutMs} ms` }',
    'RAIL-04 a sink that did not answer counts as one that has taken it',
  ),
  bug(
    'delivery-tail-kept',
    'maintenance/relay.ts',
    'const tooLate = stopping || time.mono() + deliveryTimeoutMs > until',
    'const tooLate = stopping',
    'RAIL-02 the tail of a batch is sent after its claim has lapsed',
  ),
  bug(
    'delivery-lapse-uncounted',
    'store/tables/deliveries.ts',
    `lapses = lapses + case when state = 'sending' then 1 else 0 end`,
    'lapses = lapses',
    'RAIL-02 a claim that lapsed is not counted',
  ),
  bug(
    'notice-without-delivery',
    'transitions/end-attempts.ts',
    '    ...tell(notices),\n',
    '    tell(notices)[1],\n',
    'RAIL-01 a notice is stored without what is to be delivered of it',
  ),
  bug(
    'loss-untold',
    'model/notice.ts',
    `if (how === 'lost' || how === 'expired')`,
    `if (how === 'lost')`,
    'RAIL-05 nobody is told of an attempt that expired',
  ),
  bug(
    'arrival-unclaimed',
    'transitions/take-arrival.ts',
    "if (row && row.outcome !== 'refused') {",
    "if (row && row.outcome === 'ignored') {",
    'RAIL-15 a delivery that came twice at once starts two runs',
  ),
  bug(
    'arrival-unsettled',
    'transitions/take-arrival.ts',
    'yield* ask(settleArrival(arrival, outcome, run, note))',
    "if (outcome !== 'started') yield* ask(settleArrival(arrival, outcome, run, note))",
    'RAIL-15 a run is started and its delivery is not said to be taken',
  ),
  bug(
    'arrivals-forgotten',
    'store/tables/triggers.ts',
    'where a.at < {now} - $1 order by a.at',
    'where a.at < {now} - $1 / 100000 order by a.at',
    'RAIL-15 a delivery is forgotten before its window is over',
  ),
  bug(
    'own-actor-heard',
    'model/trigger.ts',
    'if (own !== null)',
    "if (own === '')",
    'RAIL-15 what the engine’s own actor caused starts a run',
  ),
]
