// PROOF-04: small scenarios in which every call of the network and of the store has a number, played again with a death
// before it, a death after it, or an answer that never comes, at each number and at pairs of them.
import { seededRandom, seedOf } from '../../src/kernel/random.ts'
import type { Called, Strike } from './faults.ts'
import { HOWS, howsOf } from './faults.ts'
import type { Plan, Scenario } from './play.ts'
import { play } from './play.ts'
import { pick } from './world.ts'

/** Longer than any scenario takes without a fault. */
const MOST_MS = 30_000

const scenario = (
  workflows: readonly string[],
  more: Partial<Omit<Plan, 'scenario'>> & Partial<Scenario> = {},
): Plan => {
  const { meddle = false, stopAtMs = null, lastsMs = 0, ...plan } = more
  return {
    seed: seedOf(`crash points of ${workflows.join()}`),
    rates: {},
    pairs: false,
    gusts: false,
    keen: false,
    rare: null,
    executors: 2,
    capacity: 2,
    real: false,
    http: false,
    sockets: false,
    isolated: false,
    contexts: false,
    runs: 2,
    chaosMs: MOST_MS,
    workflows,
    schedules: false,
    sinks: false,
    senders: false,
    silent: false,
    skip: [],
    ...plan,
    scenario: { strikes: [], meddle, stopAtMs, lastsMs },
  }
}

/** What is played: each of the ways in which a run goes through the engine, driven by scripted and by real executors. */
export const scenarios: Readonly<Record<string, Plan>> = {
  'a step': scenario(['one']),
  'five steps': scenario(['five'], { real: true }),
  'steps side by side': scenario(['fan']),
  'tries that fail': scenario(['flaky'], { real: true }),
  'a try after a wait': scenario(['patient']),
  'a sleep': scenario(['sleeper'], { real: true }),
  signals: scenario(['asker']),
  'a signal with a limit': scenario(['listener'], { real: true }),
  'an approval': scenario(['shipper'], { real: true }),
  'a parent and its children': scenario(['parent']),
  'children with a limit and a series': scenario(['sponsor'], { runs: 1 }),
  'children that fail': scenario(['guardian'], { runs: 1 }),
  'a line of one': scenario(['keyed'], { runs: 3 }),
  'a limit of units': scenario(['account'], { runs: 3, real: true }),
  'a limit that refuses': scenario(['turnstile'], { runs: 3 }),
  'a race of waits': scenario(['racer'], { real: true }),
  'a race with a retry': scenario(['contest']),
  'two waits for one signal': scenario(['pair']),
  'a series': scenario(['series'], { runs: 1 }),
  'a series that hands signals on': scenario(['relay'], { runs: 1 }),
  'turns of a chain': scenario(['chain'], { real: true }),
  'attempts that fail': scenario(['stubborn'], { real: true }),
  'a failure and its handler': scenario(['doomed']),
  'a limit of time': scenario(['deaf'], { runs: 1 }),
  'people who meddle': scenario(['five', 'sleeper', 'shipper'], {
    runs: 3,
    meddle: true,
    keen: true,
  }),
  'a stop': scenario(['five', 'sleeper'], { real: true, stopAtMs: 300 }),
  'processes of their own': scenario(['five', 'flaky'], { real: true, isolated: true }),
  'over HTTP': scenario(['five', 'shipper'], { http: true }),
  'runs of schedules': scenario(['one'], { runs: 1, schedules: true, lastsMs: 6_000 }),
  'notices to sinks': scenario(['doomed', 'shipper'], { runs: 3, sinks: true }),
  'deliveries to triggers': scenario(['one', 'asker'], { runs: 2, senders: true, lastsMs: 5_000 }),
}

/** The calls that the scenario makes when nothing befalls it; it must hold then. */
export const callsOf = async (plan: Plan): Promise<readonly Called[]> => {
  const { rule, message, calls } = await play(plan)
  if (rule !== null) throw new Error(`${rule}: ${message}`)
  return calls
}

/** Every number with each way that differs, in order. */
export const singles = (calls: readonly Called[]): Strike[][] =>
  calls.flatMap((call, i) => howsOf(call).map((how) => [{ call: i + 1, how }]))

/** So many pairs, drawn evenly. The second strikes what comes of the first, and may be beyond the calls of a world without. */
export const pairs = (calls: number, count: number, seed: number): Strike[][] => {
  const random = seededRandom(seed)
  const how = (): Strike['how'] => HOWS[pick(random, HOWS.length)] ?? 'before'
  return Array.from({ length: count }, () => {
    const call = 1 + pick(random, calls)
    const later = call + 1 + pick(random, Math.max(10, Math.round(calls / 2)))
    return [
      { call, how: how() },
      { call: later, how: how() },
    ]
  })
}

/** A scenario by its name, and what befalls it, one world for each. */
export interface Asked {
  readonly scenario: string
  readonly strikes: readonly (readonly Strike[])[]
}

export interface Struck {
  readonly worlds: number
  /** Strikes that met their call. */
  readonly faults: number
  /** Of the histories of all worlds. */
  readonly hash: string
  readonly failed: { readonly plan: Plan; readonly rule: string; readonly message: string } | null
}

/** Plays the scenario with each of these strikes, until something does not hold. */
export const playAsked = async ({ scenario: name, strikes }: Asked): Promise<Struck> => {
  const plan = scenarios[name]
  if (!plan?.scenario) throw new Error(`there is no scenario ${name}`)
  let [worlds, faults, hash] = [0, 0, '']
  for (const each of strikes) {
    const struck: Plan = { ...plan, scenario: { ...plan.scenario, strikes: each } }
    const verdict = await play(struck)
    worlds += 1
    faults += verdict.faults
    hash = seedOf(hash + verdict.hash)
      .toString(16)
      .padStart(8, '0')
    if (verdict.rule !== null)
      return {
        worlds,
        faults,
        hash,
        failed: { plan: struck, rule: verdict.rule, message: verdict.message ?? verdict.rule },
      }
  }
  return { worlds, faults, hash, failed: null }
}
