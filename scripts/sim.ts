// The simulator as a command.
//   npm run sim -- --faults N --seed S           worlds until N faults are counted or something does not hold
//   npm run sim -- --seed S --world K [--shrink] one world again, with its trace; or made as small as it goes
//   npm run sim -- --plan '{…}'                  a shrunk world again
//   npm run sim -- --planted NAME|all            hunts planted bugs, each within --faults (200,000)
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import type { Plan } from '../packages/engine/test/sim/play.ts'
import { play } from '../packages/engine/test/sim/play.ts'
import { bugs } from '../packages/engine/test/sim/planted/bugs.ts'
import { hunted } from '../packages/engine/test/sim/planted/find.ts'
import { planOf, run } from '../packages/engine/test/sim/run.ts'
import { shrink } from '../packages/engine/test/sim/shrink.ts'
import { points } from '../packages/engine/test/sim/sometimes.ts'

const { values } = parseArgs({
  options: {
    faults: { type: 'string' },
    seed: { type: 'string', default: '1' },
    world: { type: 'string' },
    plan: { type: 'string' },
    planted: { type: 'string' },
    shrink: { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed)

const replay = async (plan: Plan): Promise<void> => {
  const verdict = await play(plan, values.quiet ? null : (line) => console.log(line))
  console.log(
    verdict.rule === null
      ? `holds: ${verdict.faults} faults, history ${verdict.hash}`
      : `${verdict.rule}: ${verdict.message}`,
  )
  if (verdict.rule === null || !values.shrink) {
    process.exitCode = verdict.rule === null ? 0 : 1
    return
  }
  const small = await shrink(plan, verdict.rule)
  const last = await play(small.plan)
  console.log(`shrunk in ${small.tried} worlds to ${last.faults} faults: ${last.message}`)
  console.log(`npm run sim -- --plan '${JSON.stringify(small.plan)}'`)
  process.exitCode = 1
}

const batch = async (faults: number): Promise<void> => {
  const before = process.cpuUsage()
  const began = performance.now()
  const done = await run(seed, faults)
  const used = process.cpuUsage(before)
  const busy = (used.user + used.system) / 1_000_000
  const seconds = (performance.now() - began) / 1_000
  console.log(
    `${done.faults} faults in ${done.worlds} worlds: ${done.commits} transactions, ${done.completed} runs completed, ${Math.round(done.virtualMs / 1_000)} virtual seconds; ` +
      `${seconds.toFixed(1)} s, ${Math.round(done.faults / busy)} faults a second of one core; history ${done.hash}`,
  )
  for (const [kind, count] of [...done.byKind].sort((a, b) => b[1] - a[1]))
    console.log(`  ${kind.padEnd(28)}${count}`)
  const missed = points.filter((point) => !done.sometimes.has(point))
  console.log(
    missed.length === 0
      ? `all ${points.length} points were reached`
      : `not reached: ${missed.join('; ')}`,
  )
  if (!done.failed) return
  const { world, verdict } = done.failed
  console.log(`${verdict.rule}: ${verdict.message}`)
  console.log(`npm run sim -- --seed ${seed} --world ${world}`)
  process.exitCode = 1
}

const hunt = async (which: string, faults: number): Promise<void> => {
  const chosen = bugs.filter(({ name }) => which === 'all' || name === which)
  if (chosen.length === 0)
    throw new Error(`no bug is named ${which}; known: ${bugs.map(({ name }) => name).join(', ')}`)
  const left = [...chosen]
  let found = 0
  const one = async (): Promise<void> => {
    for (let bug = left.shift(); bug; bug = left.shift()) {
      const { rule, faults: took } = await hunted(bug, seed, faults)
      if (rule !== null) found += 1
      console.log(
        `${bug.name.padEnd(32)}${(rule ?? 'not found').padEnd(12)}${String(took).padStart(8)} faults  ${bug.why}`,
      )
    }
  }
  await Promise.all(Array.from({ length: Math.min(2, cpus().length) }, one))
  console.log(`${found} of ${chosen.length} found`)
  if (found < chosen.length) process.exitCode = 1
}

if (values.planted !== undefined) await hunt(values.planted, Number(values.faults ?? 200_000))
else if (values.plan !== undefined) await replay(JSON.parse(values.plan) as Plan)
else if (values.world !== undefined) await replay(planOf(seed, Number(values.world)))
else await batch(Number(values.faults ?? 100_000))
