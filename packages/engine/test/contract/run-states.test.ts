import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ApprovalMove, ApprovalState } from '../../src/model/approval.ts'
import { approvalMachine } from '../../src/model/approval.ts'
import { attemptMachine, firstReasons } from '../../src/model/attempt.ts'
import type { Machine } from '../../src/model/machine.ts'
import type { RunStatus, WaitOn } from '../../src/model/run.ts'
import { isHeld, isTerminal, runMachine, waitKinds } from '../../src/model/run.ts'
import type { SessionMove } from '../../src/model/session.ts'
import { sessionMachine } from '../../src/model/session.ts'
import { slotState } from '../../src/model/slots.ts'
import { waitMachine } from '../../src/model/wait.ts'
import { migrations } from '../../src/store/migrate.ts'
import type { Statement } from '../../src/store/sql.ts'
import { ask } from '../../src/store/sql.ts'
import {
  endAllSessions,
  endEmbeddedSessions,
  endLapsedSessions,
  endSession,
  numberClaim,
  renewSession,
  retireSession,
} from '../../src/store/tables/sessions.ts'
import { cancelApprovals, decideApprovals } from '../../src/store/tables/waits.ts'
import type { TestStore } from '../support/store.ts'
import { openStore } from '../support/store.ts'

let t: TestStore
beforeAll(async () => (t = await openStore()))
afterAll(() => t.close())

const schema = (): string =>
  migrations()
    .map(({ text }) => text)
    .join('\n')

/** The values of `column in ('a', 'b')` in the CHECK of a table. */
const checked = (table: string, column: string): string[] => {
  const [, body = ''] =
    new RegExp(`create table ${table} \\(([\\s\\S]*?)\\n\\)`).exec(schema()) ?? []
  const [, list = ''] = new RegExp(`check \\("?${column}"? in \\(([^)]*)\\)\\)`).exec(body) ?? []
  return [...list.matchAll(/'([^']*)'/g)].map(([, value = '']) => value)
}

const insert = (patch: Record<string, string | number | null>): void => {
  const row = {
    id: `run_${JSON.stringify(patch)}`,
    workflow: 'w',
    version: '1',
    queue: 'q',
    lane: 'l',
    tag: 1,
    rank: 1,
    input_hash: 'h',
    created_at: 1,
    root: 'r',
    series: 's',
    ...patch,
  }
  const columns = Object.keys(row)
  t.sql(
    `insert into runs (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')}) returning id`,
    ...Object.values(row),
  )
}
/** A row of this status that the constraints accept. */
const fit = (status: string, waitOn: string | null): Record<string, string | number | null> => ({
  status,
  wait_on: waitOn,
  ...(isHeld(status as 'running') ? { session: 's', claim: 1, leased_at: 1, attempt: 1 } : {}),
  ...(isTerminal(status as 'failed') ? { ended_at: 1 } : {}),
})
const waitsOf = (status: RunStatus): (WaitOn | null)[] =>
  status === 'waiting' ? [...waitKinds] : status === 'paused' ? [null, ...waitKinds] : [null]
const combinations = runMachine.states.flatMap((status) =>
  waitsOf(status).map((waitOn) => ({ status, waitOn })),
)

describe('RUN-02 the constraints say what the tables of moves say', () => {
  const lists: [string, string, readonly string[]][] = [
    ['runs', 'status', runMachine.states],
    ['runs', 'wait_on', waitKinds],
    ['attempts', 'end', attemptMachine.terminal],
    ['waits', 'state', waitMachine.states],
    ['approvals', 'state', approvalMachine.states],
    ['sessions', 'state', sessionMachine.states],
  ]
  for (const [table, column, states] of lists)
    it(`RUN-02 ${table}.${column}`, () => {
      expect(checked(table, column).sort()).toEqual([...states].sort())
    })

  it('EX-09 has these seven first reasons', () => {
    expect([...firstReasons].sort()).toEqual(
      [
        'attempt_deadline',
        'canceled',
        'capture_failure',
        'lease_lost',
        'shutdown',
        'stale',
        'time_limit',
      ].sort(),
    )
  })
})

/** Every state and move of a machine, with the state that the table says a row has afterwards. */
const cases = <S extends string, M extends string>(table: Machine<S, M>) =>
  (Object.keys(table.moves) as M[]).flatMap((move) =>
    table.states.map((from) => {
      const { from: sources, to } = table.moves[move]
      const may = sources.includes(from)
      return { move, from, may, after: !may || to === 'same' ? from : (to[0] as S) }
    }),
  )

describe('RUN-02 the statements do what the tables of moves say, from every state', () => {
  const sessionMoves: Record<SessionMove, (id: string) => Statement<object>> = {
    claim: (id) => numberClaim(id, 5),
    renew: (id) => renewSession(id, null, false),
    drain: (id) => renewSession(id, null, true),
    retire: (id) => retireSession(id),
    close: (id) => endSession(id, 'stopped', 'the test'),
    lapse: () => endLapsedSessions(2),
    disown: () => endEmbeddedSessions('another process', 'the test'),
    restore: () => endAllSessions('the test'),
  }
  for (const { move, from, may, after } of cases(sessionMachine))
    it(`RUN-02 a session that is ${from}: ${move} ${may ? `leaves it ${after}` : 'does nothing'}`, async () => {
      const id = `ses_${move}_${from}`
      const embedded = move === 'disown' ? 1 : 0
      const lease = embedded === 1 && (from === 'live' || from === 'draining') ? null : 1
      t.sql(
        `insert into sessions (id, embedded, process, host, pid, build, queues, labels, workflows, capacity, lease_ms, created_at, renewed_at, lease_until, state, ended_at)
         values (?, ?, 'p', 'h', 1, 'b', '[]', '[]', '[]', 1, 1, 1, 1, ?, ?, ?) returning id`,
        id,
        embedded,
        lease,
        from,
        from === 'ended' ? 1 : null,
      )
      const touched = await t.engine.store.run(function* () {
        const [rows] = yield* ask(sessionMoves[move](id))
        return rows.length
      })
      expect(t.sql('select state from sessions where id = ?', id)).toEqual([{ state: after }])
      if (sessionMachine.moves[move].to === 'same') expect(touched).toBe(may ? 1 : 0)
    })

  const decided = (id: string, state: Exclude<ApprovalState, 'open'>) =>
    decideApprovals([{ id, state, decided_by: null, reason: null, payload: null, rev: 1 }])
  const approvalMoves: Record<ApprovalMove, (id: string) => Statement<object>> = {
    approve: (id) => decided(id, 'approved'),
    deny: (id) => decided(id, 'denied'),
    lapse: (id) => decided(id, 'lapsed'),
    cancel: (id) => cancelApprovals([id]),
  }
  for (const { move, from, may, after } of cases(approvalMachine))
    it(`DAG-11 an approval that is ${from}: ${move} ${may ? `leaves it ${after}` : 'does nothing'}`, async () => {
      const id = `${move}_${from}`
      t.sql(
        `insert into approvals (id, run, key, prompt, deadline, state, decided_at, created_at, rev) values (?, ?, 'k', 'well', 1, ?, ?, 1, 1) returning id`,
        id,
        id,
        from,
        from === 'open' ? null : 1,
      )
      const touched = await t.engine.store.run(function* () {
        const [rows] = yield* ask(approvalMoves[move](id))
        return rows.length
      })
      expect(touched).toBe(may ? 1 : 0)
      expect(t.sql('select state from approvals where id = ?', id)).toEqual([{ state: after }])
    })
})

describe('SLOT-02 the column slot_state', () => {
  for (const { status, waitOn } of combinations)
    it(`SLOT-02 says what the model says of ${status}${waitOn === null ? '' : ` on ${waitOn}`}`, () => {
      const row = fit(status, waitOn)
      insert(row)
      const id = `run_${JSON.stringify(row)}`
      expect(t.run(id)['slot_state']).toBe(slotState(status, waitOn))
    })
})

describe('RUN-04 what a row can never be', () => {
  const wrong: [string, Record<string, string | number | null>][] = [
    ['running without a holder', { ...fit('running', null), session: null }],
    ['running without leased_at', { ...fit('running', null), leased_at: null }],
    ['running without a claim', { ...fit('running', null), claim: null }],
    ['canceling without a holder', { ...fit('canceling', null), session: null }],
    ['queued with a holder', { ...fit('queued', null), session: 's' }],
    ['waiting with a holder', { ...fit('waiting', 'time'), session: 's', claim: 1, leased_at: 1 }],
    ['paused with a claim', { ...fit('paused', null), claim: 1 }],
    ['failed with a holder', { ...fit('failed', null), session: 's', claim: 1, leased_at: 1 }],
    ['ended without an instant', { ...fit('succeeded', null), ended_at: null }],
    ['active with an end', { ...fit('queued', null), ended_at: 1 }],
    ['waiting for nothing', fit('waiting', null)],
    ['running and waiting', { ...fit('running', null), wait_on: 'time' }],
    ['queued and not ready', { ...fit('queued', null), ready_at: 5 }],
    ['a parent without a key', { ...fit('queued', null), parent: 'p' }],
    ['no units', { ...fit('queued', null), units_a: 0 }],
    ['too high a priority', { ...fit('queued', null), priority: 101 }],
    ['an unknown status', fit('stuck', null)],
    ['an unknown wait', fit('waiting', 'weather')],
  ]
  for (const [name, row] of wrong)
    it(`RUN-04 ${name} is refused by the store itself`, () => {
      expect(() => insert(row)).toThrow(/check constraint/i)
    })
})
