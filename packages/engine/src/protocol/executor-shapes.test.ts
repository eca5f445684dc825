import { expect, expectTypeOf, test } from 'vitest'
import type * as z from 'zod'
import type {
  AttemptWrite,
  ClaimRequest,
  CloseRequest,
  RegisterRequest,
  RenewRequest,
} from '../model/work.ts'
import type {
  claimRequest,
  closeRequest,
  registerRequest,
  renewRequest,
} from './executor-shapes.ts'
import { attemptWrite } from './executor-shapes.ts'
import type { Frozen } from './route.ts'
import { id } from './values.ts'

type Shape<S extends z.ZodType> = Frozen<z.output<S>>

test('RAIL-11 what executors send is checked member for member as the model has it', () => {
  expectTypeOf<Shape<typeof attemptWrite>>().toExtend<AttemptWrite>()
  expectTypeOf<Shape<typeof claimRequest>>().toEqualTypeOf<ClaimRequest>()
  expectTypeOf<Shape<typeof closeRequest>>().toEqualTypeOf<CloseRequest>()
  expectTypeOf<keyof Shape<typeof renewRequest>>().toEqualTypeOf<keyof RenewRequest>()
  expectTypeOf<keyof Shape<typeof registerRequest>>().toEqualTypeOf<keyof RegisterRequest>()
  expectTypeOf<keyof Shape<typeof attemptWrite>>().toEqualTypeOf<keyof AttemptWrite>()
})

test('RAIL-11 a member that this server does not know is dropped, so that a newer executor can talk to it', () => {
  expect(attemptWrite.parse({ run: 'r', attempt: 1, entries: [], later: true })).toEqual({
    run: 'r',
    attempt: 1,
    entries: [],
  })
})

test('DAG-11 an approval can be decided by its id however deep it stands: a run and the longest key fit together', () => {
  const key = 'k'.repeat(2_000)
  const deep = { key, kind: 'approval', approval: { prompt: 'p', data: null, deciders: [] } }
  const written = { run: 'r'.repeat(200), attempt: 1, entries: [], waits: [deep] }
  expect(attemptWrite.safeParse(written).success).toBe(true)
  expect(id.safeParse(`${written.run}:${key}`).success).toBe(true)
})

const DEEP = '['.repeat(100_000) + ']'.repeat(100_000)
const UNFIT = ['{bad', '', '\u0000', DEEP]
const entry = { n: 1, key: 'k', kind: 'step', at: 1, output: null, error: null }
const written = (more: object): object => ({ run: 'r', attempt: 1, entries: [], ...more })

test.each<[string, (text: string) => object]>([
  ['the output of an entry', (output) => written({ entries: [{ ...entry, output }] })],
  ['the error of an entry', (error) => written({ entries: [{ ...entry, error }] })],
  ['the output of a run', (output) => written({ end: { kind: 'complete', output } })],
  [
    'the error of a run',
    (error) => written({ end: { kind: 'fail', reason: '', note: '', error } }),
  ],
  [
    'the input of a successor',
    (input) => written({ end: { kind: 'continue', input, runId: 's' } }),
  ],
  ['the state', (state) => written({ state })],
  ['the progress', (progress) => written({ progress })],
  ['an item of a stream', (data) => written({ stream: [{ stream: 's', seq: 1, data }] })],
  ['the error of a wait', (error) => written({ waits: [{ key: 'k', kind: 'retry', error }] })],
])(
  'B114 %s that is not JSON, or too deep to be written again, is refused where an executor sends it',
  (_what, make) => {
    for (const text of UNFIT) expect(attemptWrite.safeParse(make(text)).success).toBe(false)
    expect(attemptWrite.safeParse(make('{"a":[1]}')).success).toBe(true)
  },
)

test('B114 what a value may be nested is not taken from it by what stands around it', () => {
  const output = `{"came":true,"value":${'['.repeat(500)}${']'.repeat(500)}}`
  expect(attemptWrite.safeParse(written({ entries: [{ ...entry, output }] })).success).toBe(true)
})

test('RUN-29 an instant that no calendar has is refused, and a delay from outside is whole', () => {
  const at = (dueAt: number) =>
    attemptWrite.safeParse(written({ waits: [{ key: 'k', kind: 'time', dueAt }] })).success
  expect([at(8.64e15), at(-8.64e15)]).toEqual([true, true])
  expect([at(8.64e15 + 1), at(-8.64e15 - 1)]).toEqual([false, false])
  const { waits } = attemptWrite.parse(
    written({ waits: [{ key: 'k', kind: 'time', dueInMs: 0.25 }] }),
  )
  expect(waits?.[0]?.dueInMs).toBe(1)
})
