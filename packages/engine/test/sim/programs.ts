// The workflows that are run in the simulator: small programs, as data, that both the scripted and the real executor can
// drive. What a program does follows from its input and its journal alone.
import type { Definition, LimitDeclaration } from '../../src/model/definition.ts'
import type { RetryPolicy } from '../../src/model/retry.ts'

export type Op =
  /** A body of `ms`; its first `failing` tries throw, the next comes `retryMs` later. */
  | {
      readonly do: 'step'
      readonly key: string
      readonly ms: number
      readonly failing?: number
      readonly retryMs?: number
    }
  | { readonly do: 'parallel'; readonly keys: readonly string[]; readonly ms: number }
  | { readonly do: 'sleep'; readonly key: string; readonly ms: number }
  | {
      readonly do: 'signal'
      readonly key: string
      readonly name: string
      readonly ms: number | null
    }
  | { readonly do: 'approval'; readonly key: string; readonly ms: number }
  | { readonly do: 'child'; readonly key: string; readonly workflow: string; readonly input: Input }
  | {
      readonly do: 'spawn'
      readonly key: string
      readonly workflow: string
      readonly input: Input
      readonly bound: boolean
    }
  /** A signal against a timer; the loser is closed. */
  | {
      readonly do: 'race'
      readonly signal: string
      readonly timer: string
      readonly name: string
      readonly ms: number
    }
  /** A timer against a step that is tried again; the step's retry is closed where the timer wins. */
  | {
      readonly do: 'contest'
      readonly timer: string
      readonly timerMs: number
      readonly key: string
      readonly ms: number
      readonly failing: number
      readonly retryMs: number
    }
  /** Two waits for one signal each, at once. */
  | {
      readonly do: 'both'
      readonly keys: readonly [string, string]
      readonly name: string
      readonly ms: number
    }
  /** A wait for a signal at which the program does not stand: what comes is read only by a run that continues it. */
  | { readonly do: 'watch'; readonly key: string; readonly name: string }
  /** A body that settles long after its limits, and does not hear that it should stop. */
  | { readonly do: 'deaf'; readonly key: string; readonly ms: number }
  /** A body that kills its process. */
  | { readonly do: 'die'; readonly key: string }
  /** Hands the run back to the end of its line, once for this key. */
  | { readonly do: 'chain'; readonly key: string }
  /** Shows progress without an entry. */
  | { readonly do: 'show' }
  /** Throws, on so many attempts that failed before. */
  | { readonly do: 'throw'; readonly times: number }

export interface Input {
  readonly n?: number
  readonly c?: string
  readonly u?: number
  readonly [key: string]: unknown
}

export interface Program {
  readonly name: string
  readonly ops: (input: Input) => readonly Op[]
  /** What follows the last op: its input where the run continues as another. */
  readonly next?: (input: Input) => Input | null
  readonly limits?: readonly LimitDeclaration[]
  readonly retry?: RetryPolicy
  readonly attemptLimitMs?: number
  readonly totalLimitMs?: number
  readonly startByMs?: number
  readonly onEnd?: string
  /** Reasons for which a run of it may fail. */
  readonly fails?: readonly string[]
  /** Started by others only. */
  readonly inner?: boolean
  /** So many are started in a world, since each holds up the others. */
  readonly most?: number
}

const step = (key: string, ms = 150): Op => ({ do: 'step', key, ms })

export const programs: readonly Program[] = [
  { name: 'one', ops: () => [step('a')] },
  { name: 'five', ops: () => ['a', 'b', 'c', 'd', 'e'].map((key) => step(key, 100)) },
  { name: 'fan', ops: () => [{ do: 'parallel', keys: ['a', 'b', 'c'], ms: 120 }, step('d')] },
  {
    name: 'flaky',
    ops: () => [{ do: 'step', key: 'a', ms: 20, failing: 2, retryMs: 100 }, step('b', 1_000)],
  },
  {
    name: 'patient',
    ops: () => [step('a'), { do: 'step', key: 'b', ms: 20, failing: 1, retryMs: 2_500 }, step('c')],
  },
  {
    name: 'sleeper',
    ops: () => [step('a'), { do: 'sleep', key: 'nap', ms: 1_500 }, step('b', 700)],
  },
  {
    name: 'asker',
    ops: () => [
      { do: 'signal', key: 'go', name: 'go', ms: null },
      step('a', 500),
      { do: 'signal', key: 'more', name: 'go', ms: null },
      step('b', 500),
    ],
  },
  {
    name: 'listener',
    ops: () => [step('a'), { do: 'signal', key: 'go', name: 'go', ms: 2_000 }, step('b', 500)],
  },
  {
    name: 'shipper',
    ops: () => [step('a'), { do: 'approval', key: 'ship', ms: 3_000 }, step('b')],
  },
  {
    name: 'parent',
    ops: ({ n = 1 }) => [
      step('a'),
      { do: 'child', key: 'kid', workflow: n > 0 ? 'parent' : 'five', input: { n: n - 1 } },
      { do: 'spawn', key: 'loose', workflow: 'one', input: {}, bound: false },
      step('b'),
    ],
  },
  {
    name: 'sponsor',
    ops: () => [
      { do: 'child', key: 'kid', workflow: 'keyed', input: { c: 'x' } },
      { do: 'child', key: 'heir', workflow: 'series', input: { n: 1 } },
      { do: 'spawn', key: 'bound', workflow: 'sleeper', input: {}, bound: true },
    ],
  },
  {
    name: 'guardian',
    ops: () => [
      { do: 'child', key: 'bad', workflow: 'doomed', input: {} },
      { do: 'child', key: 'slow', workflow: 'sleeper', input: {} },
      step('a'),
    ],
  },
  {
    name: 'keyed',
    ops: () => [step('a', 80), { do: 'sleep', key: 'nap', ms: 400 }, step('b', 80)],
    limits: [{ key: 'customer:{c}', value: 1 }],
  },
  {
    name: 'account',
    ops: () => [step('a', 40), { do: 'sleep', key: 'nap', ms: 600 }, step('b', 40)],
    limits: [
      { key: 'account:{c}', value: 3, mode: 'whole_run', units: 'u' },
      { key: 'gate:{c}', value: 2 },
    ],
  },
  {
    name: 'turnstile',
    ops: () => [step('a', 150)],
    limits: [{ key: 'turnstile:{c}', value: 2, policy: 'reject' }],
  },
  {
    name: 'racer',
    ops: () => [
      { do: 'race', signal: 'go', timer: 'nap', name: 'go', ms: 700 },
      step('a'),
      { do: 'signal', key: 'again', name: 'go', ms: 1_500 },
    ],
  },
  {
    name: 'contest',
    ops: () => [
      {
        do: 'contest',
        timer: 'limit',
        timerMs: 500,
        key: 'try',
        ms: 150,
        failing: 2,
        retryMs: 200,
      },
      step('a', 600),
      { do: 'sleep', key: 'nap', ms: 400 },
      step('b'),
    ],
  },
  {
    name: 'pair',
    ops: () => [step('a'), { do: 'both', keys: ['one', 'two'], name: 'go', ms: 2_500 }, step('b')],
  },
  {
    name: 'ignorer',
    ops: () => [step('a'), { do: 'deaf', key: 'b', ms: 8_000 }],
  },
  {
    name: 'series',
    ops: () => [
      step('a'),
      { do: 'spawn', key: 'loose', workflow: 'sleeper', input: {}, bound: false },
      { do: 'signal', key: 'go', name: 'go', ms: 800 },
    ],
    next: ({ n = 2 }) => (n > 0 ? { n: n - 1 } : null),
  },
  {
    name: 'relay',
    ops: () => [
      { do: 'signal', key: 'go', name: 'go', ms: 400 },
      { do: 'watch', key: 'news', name: 'go' },
      step('a', 500),
    ],
    next: ({ n = 1 }) => (n > 0 ? { n: n - 1 } : null),
  },
  {
    name: 'deaf',
    ops: () => [step('a'), { do: 'deaf', key: 'b', ms: 9_000 }],
    attemptLimitMs: 1_500,
    totalLimitMs: 6_000,
    retry: { maxAttempts: 2, base: 200 },
    fails: ['attempt_deadline', 'time_limit'],
    onEnd: 'mourner',
  },
  {
    name: 'poison',
    ops: () => [step('a'), { do: 'show' }, { do: 'die', key: 'b' }],
    fails: ['attempts_exhausted'],
    onEnd: 'mourner',
    most: 2,
  },
  {
    name: 'chain',
    ops: () => [
      step('a'),
      { do: 'chain', key: 'x' },
      step('b'),
      { do: 'chain', key: 'y' },
      step('c'),
    ],
  },
  {
    name: 'stubborn',
    ops: () => [step('a'), { do: 'throw', times: 2 }, step('b')],
    retry: { maxAttempts: 3, base: 300 },
  },
  {
    name: 'doomed',
    ops: () => [step('a'), { do: 'throw', times: 99 }],
    retry: { maxAttempts: 2, base: 300 },
    fails: ['error'],
    onEnd: 'mourner',
  },
  {
    name: 'hasty',
    ops: () => [step('a', 30)],
    startByMs: 1_500,
    fails: ['not_started'],
  },
  {
    name: 'mourner',
    ops: () => [step('a', 60)],
    limits: [{ key: 'mourning', value: 1 }],
    inner: true,
  },
]

export const programOf = (name: string): Program => {
  const found = programs.find((each) => each.name === name)
  if (!found) throw new Error(`there is no program ${name}`)
  return found
}

export const definitionFor = (program: Program): Definition => ({
  workflow: program.name,
  version: '1',
  queue: 'default',
  labels: [],
  input: null,
  output: null,
  limits: program.limits ?? [],
  totalLimitMs: program.totalLimitMs ?? null,
  attemptLimitMs: program.attemptLimitMs ?? null,
  startByMs: program.startByMs ?? null,
  retry: program.retry ?? null,
  onEnd: program.onEnd ?? null,
  slotClass: 'default',
  isolation: 'inline',
})

/** Every workflow that can be reached from these, so that executors announce what children and ends need. */
export const closureOf = (names: readonly string[]): Program[] => {
  const all = new Set<string>()
  const add = (name: string): void => {
    if (all.has(name)) return
    all.add(name)
    const program = programOf(name)
    if (program.onEnd !== undefined) add(program.onEnd)
    for (const n of [0, 1])
      for (const op of program.ops({ n }))
        if (op.do === 'child' || op.do === 'spawn') add(op.workflow)
  }
  for (const name of names) add(name)
  return [...all].sort().map(programOf)
}

/** What the body of a step answers: always the same for the same run and key. */
export const outputOf = (run: string, key: string): string =>
  JSON.stringify(`${run.slice(-7)}/${key} é\u0000`)
