// The torture, short: everything strikes, and nothing is lost, done twice or left behind. `npm run torture` is the long one.
import { expect, test } from 'vitest'
import { report } from '../torture/report.ts'
import { torture } from '../torture/torture.ts'

test(
  'PROOF-06 PROOF-08 S1 S2 S6 real processes on a real PostgreSQL are killed, frozen, cut off and starved: what was acknowledged is there, ends once and counts once',
  { timeout: 400_000 },
  async () => {
    const verdict = await torture({
      seed: 6,
      strikingMs: 25_000,
      everyKind: true,
      servers: 2,
      executors: 3,
      people: 12,
      pace: [100, 900],
    })

    const told = report(verdict).join('\n')
    expect(verdict.violations, told).toEqual([])
    expect(verdict.struck.filter(({ hits }) => hits === 0).map(({ kind }) => kind), told).toEqual([]) // prettier-ignore
    expect(verdict.faults, told).toEqual([])
    expect(verdict.history.started.size, told).toBeGreaterThan(20)
    expect(verdict.rows.attempts.some(({ end }) => end === 'expired'), told).toBe(true) // prettier-ignore
  },
)
