// Makes a world in which something does not hold as small as it goes: fewer workflows, kinds of faults, executors, runs and
// time, then single faults. What is left must break the same rule.
import type { Plan } from './play.ts'
import { play } from './play.ts'

export interface Shrunk {
  readonly plan: Plan
  readonly tried: number
}

export const shrink = async (plan: Plan, rule: string, most = 400): Promise<Shrunk> => {
  let best = plan
  let tried = 0
  const better = async (candidate: Plan): Promise<boolean> => {
    if (tried >= most) return false
    tried += 1
    const verdict = await play(candidate)
    if (verdict.rule !== rule) return false
    best = candidate
    return true
  }
  for (let smaller = true; smaller;) {
    smaller = false
    for (const name of best.workflows)
      if (
        best.workflows.length > 1 &&
        (await better({ ...best, workflows: best.workflows.filter((each) => each !== name) }))
      )
        smaller = true
    for (const kind of Object.keys(best.rates)) {
      const rates = { ...best.rates, [kind]: 0 }
      if (best.rates[kind as keyof typeof rates] !== 0 && (await better({ ...best, rates })))
        smaller = true
    }
    if (best.executors > 1 && (await better({ ...best, executors: best.executors - 1 })))
      smaller = true
    if (best.capacity > 1 && (await better({ ...best, capacity: best.capacity - 1 })))
      smaller = true
    if (best.runs > 1 && (await better({ ...best, runs: Math.ceil(best.runs / 2) }))) smaller = true
    if (best.chaosMs > 2_000 && (await better({ ...best, chaosMs: Math.ceil(best.chaosMs * 0.7) })))
      smaller = true
  }
  await withoutFaults(best, better, (await play(best)).drawn)
  return { plan: best, tried }
}

/** Leaves out faults, many at once and then fewer, for as long as the rule stays broken. */
const withoutFaults = async (
  plan: Plan,
  better: (candidate: Plan) => Promise<boolean>,
  drawn: number,
): Promise<void> => {
  let skip = [...plan.skip]
  for (let size = Math.ceil(drawn / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = 1; from <= drawn; from += size) {
      const part = Array.from({ length: size }, (_each, i) => from + i).filter(
        (index) => !skip.includes(index),
      )
      if (part.length === 0) continue
      const candidate = { ...plan, skip: [...skip, ...part] }
      if (await better(candidate)) skip = candidate.skip
    }
}
