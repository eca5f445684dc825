// The kinds of runs that are started, and what each must come to: as a function of its input, of its own journal and of
// its children, so that a result can be checked without knowing which attempt did what.
import type { Random } from '../../src/kernel/random.ts'
import type { Entry, Rows, Run } from './rows.ts'

export interface Kind {
  readonly workflow: string
  /** How often it is started beside the others. */
  readonly weight: number
  readonly input: (chance: Random) => Readonly<Record<string, unknown>>
  readonly owner?: string
  /** What people do to it once it is started. */
  readonly people?: 'signal' | 'maybe signal' | 'cancel' | 'cancel soon'
}

export const among = (chance: Random, least: number, most: number): number =>
  least + Math.floor(chance.next() * (most - least + 1))

export const OWNER = 'ana'
/** What each limit lets in; all by the keys that the rows have. */
export const LIMITS: readonly {
  readonly prefix: string
  readonly value: number
  readonly whole: boolean
}[] = [
  { prefix: 'shared', value: 2, whole: false },
  { prefix: 'one:', value: 1, whole: true },
  { prefix: `owner:${OWNER}`, value: 4, whole: true },
]

const chain = (chance: Random): { steps: number; ms: number } => ({
  steps: among(chance, 1, 6),
  ms: among(chance, 0, 60),
})

export const kinds: readonly Kind[] = [
  { workflow: 'chain', weight: 6, input: chain },
  { workflow: 'chain', weight: 2, input: chain, owner: OWNER },
  {
    workflow: 'chain',
    weight: 2,
    people: 'cancel soon',
    input: (chance) => ({ steps: 8, ms: among(chance, 20, 80) }),
  },
  {
    workflow: 'waits',
    weight: 3,
    people: 'signal',
    input: (chance) => ({ ms: among(chance, 5, 200) }),
  },
  {
    workflow: 'family',
    weight: 2,
    input: (chance) => ({ children: among(chance, 1, 3), steps: 2, ms: among(chance, 0, 30) }),
  },
  {
    workflow: 'flaky',
    weight: 2,
    input: (chance) => ({
      fails: among(chance, 1, 3),
      retryMs: chance.next() < 0.3 ? 2_200 : among(chance, 10, 300),
    }),
  },
  {
    workflow: 'limited',
    weight: 2,
    input: (chance) => ({ key: `k${among(chance, 1, 4)}`, ms: among(chance, 10, 60) }),
  },
  {
    workflow: 'alone',
    weight: 2,
    input: (chance) => ({ key: `a${among(chance, 1, 4)}`, ms: among(chance, 10, 60) }),
  },
  { workflow: 'broken', weight: 1, input: (chance) => ({ ms: among(chance, 0, 20) }) },
  { workflow: 'never', weight: 1, people: 'cancel', input: () => ({}) },
  { workflow: 'series', weight: 1, input: (chance) => ({ left: among(chance, 1, 3) }) },
  {
    workflow: 'race',
    weight: 2,
    people: 'maybe signal',
    input: (chance) => ({ ms: among(chance, 50, 600) }),
  },
]

/** One of them, by weight. */
export const someKind = (chance: Random): Kind => {
  let at = chance.next() * kinds.reduce((sum, { weight }) => sum + weight, 0)
  return kinds.find(({ weight }) => (at -= weight) < 0) ?? (kinds[0] as Kind)
}

/** What a run of this workflow ends as, when nobody cancels it. */
export const endOf = (workflow: string): 'succeeded' | 'failed' | 'canceled' =>
  workflow === 'broken' ? 'failed' : workflow === 'never' ? 'canceled' : 'succeeded'

/** The signal that a run of `waits` and `race` is sent, under an id of its own. */
export const signalTo = (run: string): { id: string; payload: string } => ({
  id: `go-${run}`,
  payload: `for ${run}`,
})

/** What a run that succeeded must have returned. */
export const outputOf = (run: Run, rows: Pick<Rows, 'childrenOf' | 'journalOf'>): unknown => {
  const journal = rows.journalOf(run.id)
  const recorded = (key: string): unknown => journal.find((entry) => entry.key === key)?.output
  const input = run.input as Record<string, number>
  switch (run.workflow) {
    case 'chain':
      return Array.from({ length: input['steps'] ?? 0 }, (_, i) => recorded(`step ${i}`))
    case 'waits':
      return {
        before: recorded('before'),
        sent: signalTo(run.id).payload,
        decision: 'approved',
        after: recorded('after'),
      }
    case 'family':
      return {
        outputs: [...rows.childrenOf(run.id)].toSorted(byPlace).map(({ output }) => output),
        gathered: recorded('gather'),
      }
    case 'flaky':
      return { tries: (input['fails'] ?? 0) + 1, after: recorded('after') }
    case 'limited':
    case 'alone':
      return [recorded('first'), recorded('second')]
    case 'series':
      return run.reason === 'continued' ? null : recorded('one')
    case 'race': {
      const winner = winnerIn(journal)
      return {
        winner,
        sent: winner === 'sent' ? signalTo(run.id).payload : null,
        after: recorded('after'),
      }
    }
    case 'stall':
      return [recorded('after')]
    default:
      return undefined
  }
}

const byPlace = (a: Run, b: Run): number => (String(a.parentKey) < String(b.parentKey) ? -1 : 1)

const winnerIn = (journal: readonly Entry[]): string =>
  journal.some(({ kind, output }) => kind === 'signal' && output !== null) ? 'sent' : 'time'
