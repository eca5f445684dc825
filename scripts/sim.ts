// The simulator as a command: `npm run sim -- --faults N --seed S`, and `--world K` to play one world again with its trace.
import { parseArgs } from 'node:util'
import { play } from '../packages/engine/test/sim/play.ts'
import { planOf, run } from '../packages/engine/test/sim/run.ts'

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    world: { type: 'string' },
    quiet: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed)

if (values.world !== undefined) {
  const plan = planOf(seed, Number(values.world))
  const verdict = await play(plan, values.quiet ? null : (line) => console.log(line))
  console.log(JSON.stringify({ ...plan, skip: plan.skip.length }))
  console.log(
    verdict.rule === null ? `holds, ${verdict.hash}` : `${verdict.rule}: ${verdict.message}`,
  )
  process.exitCode = verdict.rule === null ? 0 : 1
} else {
  const began = process.cpuUsage()
  const batch = await run(seed, Number(values.faults))
  const used = process.cpuUsage(began)
  const seconds = (used.user + used.system) / 1_000_000
  console.log(
    `${batch.worlds} worlds, ${batch.faults} faults in ${seconds.toFixed(1)} s of processor (${Math.round(batch.faults / seconds)}/s), ${batch.commits} commits, ${batch.completed} runs completed, ${Math.round(batch.virtualMs / 1000)} virtual seconds`,
  )
  for (const [kind, count] of [...batch.byKind].sort((a, b) => b[1] - a[1]))
    console.log(`  ${kind} ${count}`)
  if (batch.failed) {
    const { world, verdict } = batch.failed
    console.log(`${verdict.rule}: ${verdict.message}`)
    console.log(`npm run sim -- --seed ${seed} --world ${world}`)
    process.exitCode = 1
  }
}
