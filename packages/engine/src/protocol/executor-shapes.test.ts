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
