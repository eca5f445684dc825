// A plain write is stored by statements that guard themselves, any other as the model decides: the two must never differ.
// Each case is played twice in one store, on two runs that are alike, once each way.
import { afterEach, beforeEach, expect, it } from 'vitest'
import type {
  AttemptWrite,
  ClaimedRun,
  EndReport,
  Entry,
  WriteAnswer,
} from '../../src/model/work.ts'
import { write } from '../../src/transitions/write.ts'
import type { Row, Session, TestStore } from '../support/store.ts'
import { definition, entry, openStore } from '../support/store.ts'

let t: TestStore
beforeEach(async () => {
  t = await openStore({ settings: { entriesMax: 5, journalMaxBytes: 200 } })
})
afterEach(() => t.close())

type Write = Partial<Omit<AttemptWrite, 'run' | 'end'>> & { readonly end?: EndReport }
interface Twin {
  readonly run: ClaimedRun
  readonly session: Session
}

const complete = (output: unknown = 'done'): EndReport => ({
  kind: 'complete',
  output: JSON.stringify(output),
})
const long = (n: number, bytes: number): Entry =>
  entry(n, `s${n}`, { output: JSON.stringify('x'.repeat(bytes)) })

/** What became of a run, without what tells the two apart. */
const seen = (id: string): unknown => {
  const bare = (row: Row): Row =>
    Object.fromEntries(
      Object.entries(row).filter(
        ([name]) =>
          ![
            'id',
            'run',
            'root',
            'series',
            'tag',
            'rank',
            'command',
            'claim',
            'parent_key',
          ].includes(name),
      ),
    )
  return {
    run: bare(t.run(id)),
    steps: t.sql('select * from steps where run = ? order by n, key', id).map(bare),
    attempts: t.sql('select * from attempts where run = ? order by attempt', id).map(bare),
    orders: t.sql('select kind, payload from orders where run = ?', id).length,
  }
}

const generally = async ({ run, session }: Twin, more: Write): Promise<WriteAnswer | string> => {
  const item: AttemptWrite = { run: run.run, attempt: run.attempt, entries: [], ...more }
  try {
    const { answers } = await t.engine.act((tx, context) =>
      write(tx, [{ session: session.id, write: item }], context, 'wait'),
    )
    return answers[0] as WriteAnswer
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}
const plainly = async ({ run, session }: Twin, more: Write): Promise<WriteAnswer | string> => {
  try {
    return await session.write(run, more)
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}
const told = (answer: WriteAnswer | string): unknown =>
  typeof answer === 'string' ? answer : answer.ok ? answer : answer.code

/** What differs, in words: the whole rows would hide it. */
const differing = ({ message, actual, expected }: AssertionError): string => {
  const lines = (value: unknown): string[] => (JSON.stringify(value, null, 1) ?? '').split('\n')
  const [mine, theirs] = [lines(actual), lines(expected)]
  const only = (these: string[], those: string[]): string[] =>
    these.filter((line) => !those.includes(line)).map((line) => line.trim())
  return `${message.split('\n')[0]?.slice(0, 60)}: ${only(mine, theirs).join(' ')} | ${only(theirs, mine).join(' ')}`
}
interface AssertionError extends Error {
  readonly actual: unknown
  readonly expected: unknown
}

const set = ({ run }: ClaimedRun, assignments: string): unknown =>
  t.sql(`update runs set ${assignments} where id = ? returning id`, run)

/** Each prepares a run that was claimed, in place. */
const rows: readonly (readonly [string, (twin: Twin) => unknown])[] = [
  ['a run as it was claimed', () => undefined],
  ['one with entries', ({ run, session }) => session.checkpoint(run, 'a', 'b')],
  ['one that was lost twice', ({ run }) => set(run, `losses = 2, suspect_since = 5`)],
  ['one that was handed back', ({ run }) => set(run, `hand_backs = 3, resumed = 1`)],
  ['one with a note', ({ run }) => set(run, `note = 'n'`)],
  ['one that is to pause', ({ run }) => t.engine.pause(run.run, 'ana', null)],
  [
    'one that is to be canceled',
    ({ run }) => t.engine.cancel({ run: run.run, by: 'ana', reason: null }),
  ],
  ['one with an attempt limit', ({ run }) => set(run, `attempt_deadline = 9e15`)],
  [
    'one that waits for something',
    ({ run, session }) => session.write(run, { waits: [{ key: 'w', kind: 'signal', name: 'go' }] }),
  ],
  [
    'one with a child',
    ({ run, session }) =>
      session.write(run, {
        waits: [
          {
            key: 'c',
            kind: 'child',
            child: {
              id: `${run.run}_child`,
              workflow: 'w',
              input: 'null',
              awaited: true,
              onParentEnd: 'cancel',
            },
          },
        ],
      } as Write),
  ],
  ['a child', ({ run }) => set(run, `parent = 'p', parent_key = id, awaited = 1`)],
  ['a child that nobody awaits', ({ run }) => set(run, `parent = 'p', parent_key = id`)],
  ['one that holds a slot', ({ run }) => set(run, `limit_a = 'k', limit_modes = 'w'`)],
  ['one with somebody for its end', ({ run }) => set(run, `on_end = 'w'`)],
  ['one that was taken back', async ({ run }) => t.engine.takeFrom(run.run, 'ana', 'test')],
  ['one that has ended', ({ run, session }) => session.complete(run, 'first')],
]

const writes: readonly (readonly [string, (run: ClaimedRun, recorded: number) => Write])[] = [
  ['a step', (_run, n) => ({ entries: [entry(n + 1)] })],
  [
    'two steps',
    (_run, n) => ({
      entries: [entry(n + 1), entry(n + 2, 'patched', { kind: 'patch', output: null })],
    }),
  ],
  [
    'a step that failed',
    (_run, n) => ({ entries: [entry(n + 1, 'f', { output: null, error: '{"message":"m"}' })] }),
  ],
  ['a result', () => ({ end: complete() })],
  ['a step and a result', (_run, n) => ({ entries: [entry(n + 1)], end: complete({ a: 'é' }) })],
  ['a result of nothing', () => ({ end: { kind: 'complete', output: null } })],
  ['a step that comes too early', (_run, n) => ({ entries: [entry(n + 2)] })],
  [
    'a step and a result that come too early',
    (_run, n) => ({ entries: [entry(n + 2)], end: complete() }),
  ],
  [
    'steps of which some are recorded',
    (_run, n) => ({ entries: [entry(Math.max(1, n), n === 0 ? 's1' : 'b'), entry(n + 1, 'next')] }),
  ],
  [
    'another key under a number that is recorded',
    (_run, n) => ({ entries: [entry(Math.max(1, n), 'other')] }),
  ],
  ['a key twice', (_run, n) => ({ entries: [entry(n + 1, 'same'), entry(n + 2, 'same')] })],
  [
    'more entries than there may be',
    (_run, n) => ({ entries: [1, 2, 3, 4, 5, 6].map((i) => entry(n + i)) }),
  ],
  ['more bytes than there may be', (_run, n) => ({ entries: [long(n + 1, 300)], end: complete() })],
  ['as many bytes as there may be', (_run, n) => ({ entries: [long(n + 1, 190)] })],
  ['another attempt’s step', (run, n) => ({ attempt: run.attempt + 1, entries: [entry(n + 1)] })],
  ['another attempt’s result', (run) => ({ attempt: run.attempt - 1, end: complete() })],
  [
    'a failure',
    () => ({
      end: { kind: 'fail', reason: 'error', error: '{"message":"m"}', note: 'm' },
    }),
  ],
]

it.each(rows)(
  'RUN-07 RAIL-09 on %s a plain write does what the model says, and so does its repeat',
  async (_name, prepare) => {
    const differences: string[] = []
    for (const [what, make] of writes) {
      const session = await t.session({ definitions: [definition('w')] })
      await t.start('w')
      await t.start('w')
      const [a, b] = (await session.claim(2)).map((run) => ({ run, session })) as [Twin, Twin]
      await prepare(a)
      await prepare(b)
      const recorded = Number(t.run(a.run.run)['entries'])
      for (const time of ['first', 'repeat']) {
        const answers = [
          told(await plainly(a, make(a.run, recorded))),
          told(await generally(b, make(b.run, recorded))),
        ]
        const states = [seen(a.run.run), seen(b.run.run)]
        try {
          expect(answers[0]).toEqual(answers[1])
          expect(states[0]).toEqual(states[1])
        } catch (error) {
          differences.push(`${what} (${time}): ${differing(error as AssertionError)}`)
        }
      }
      await t.kill(session)
      t.sql('delete from runs returning id')
      t.sql('delete from waits returning run')
      t.sql('delete from orders returning id')
    }
    expect(differences).toEqual([])
  },
)
