// The simulator as a command.
//   npm run sim -- --faults N --seed S           worlds until N faults are counted or something does not hold
//   npm run sim -- --seed S --world K [--shrink] one world again, with its trace; or made as small as it goes
//   npm run sim -- --plan '{…}'                  a shrunk world again
//   npm run sim -- --planted NAME,NAME|all       hunts planted bugs, each within its budget or --faults
//   npm run sim -- --crash-points N              every call of each scenario struck in each way, and N pairs for each
//   --processes P                                how many play at once (one for each core); changes no figure but the time
//   --record                                     writes what was said to docs/proof.md; bugs that were not hunted keep their rows
import { availableParallelism } from 'node:os'
import { callsOf, pairs, scenarios, singles } from '../packages/engine/test/sim/crash-points.ts'
import type { Kind } from '../packages/engine/test/sim/faults.ts'
import type { Plan } from '../packages/engine/test/sim/play.ts'
import { play } from '../packages/engine/test/sim/play.ts'
import { bugs, BUDGET } from '../packages/engine/test/sim/planted/bugs.ts'
import { hunted, huntedIn, startPlayer } from '../packages/engine/test/sim/planted/find.ts'
import { podBugs } from '../packages/engine/test/sim/planted/pod-bugs.ts'
import { spawnBugs } from '../packages/engine/test/sim/planted/spawn-bugs.ts'
import type { Tally } from '../packages/engine/test/sim/run.ts'
import { planOf, run } from '../packages/engine/test/sim/run.ts'
import { shrink } from '../packages/engine/test/sim/shrink.ts'
import { points } from '../packages/engine/test/sim/sometimes.ts'
import type { Section } from './proof-page.ts'
import { record, recordRows, sources } from './proof-page.ts'
import { simOptions } from './sim-options.ts'

/** All that is planted; what is found in worlds of its own with the program that plays these. */
const planted = [
  ...bugs.map((bug) => ({ bug, world: null })),
  ...spawnBugs.map((bug) => ({ bug, world: '../spawn-player.ts' })),
  ...podBugs.map((bug) => ({ bug, world: '../pod-player.ts' })),
]
const names = planted.map(({ bug: { name } }) => name)

const read = simOptions(process.argv.slice(2), availableParallelism(), names)
if ('mistakes' in read) {
  for (const mistake of read.mistakes) console.error(mistake)
  console.error('the head of scripts/sim.ts says what there is')
  process.exit(2)
}
const values = read.options
const { seed, processes } = values

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

const share = (part: number, whole: number): string =>
  `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`

const batch = async (faults: number): Promise<void> => {
  const began = performance.now()
  const seconds = (): number => (performance.now() - began) / 1_000
  const players = await Promise.all(Array.from({ length: processes }, () => startPlayer(null)))
  let told = 0
  const done = await run(
    seed,
    faults,
    players.map((player) => player.play),
    (sum) => {
      if (seconds() - told < 10) return
      told = seconds()
      console.error(
        `${sum.faults} of ${faults} faults, ${sum.worlds} worlds, ${Math.round(told)} s`,
      )
    },
  )
  for (const player of players) player.stop()
  tell(
    'A batch of worlds',
    `npm run sim -- --faults ${faults} --seed ${seed}`,
    figures(done, seconds()),
  )
  if (!done.failed) return
  const { world, rule, message } = done.failed
  console.log(`${rule}: ${message}`)
  console.log(`npm run sim -- --seed ${seed} --world ${world}`)
  process.exitCode = 1
}

const tell = (section: Section, command: string, lines: readonly string[]): void => {
  for (const line of lines) console.log(line)
  if (values.record) record(section, command, lines)
}

const figures = (done: Tally, seconds: number): string[] => {
  const lines: string[] = []
  const line = (what: string, figure: string | number): void =>
    void lines.push(`${what.padEnd(58)}${figure}`)
  line('worlds', done.worlds)
  line('  without faults: nothing was tried again', share(done.calm, done.worlds))
  line('  that let two kinds strike at once', share(done.pairs, done.worlds))
  line('  in which two kinds did', share(done.together, done.worlds))
  line('transactions, each checked', done.commits)
  line('runs that completed', done.completed)
  line('virtual seconds', Math.round(done.virtualMs / 1_000))
  line('faults', done.faults)
  line('  of which delays and duplicates', share(done.soft, done.faults))
  for (const [kind, count] of (Object.entries(done.byKind) as [Kind, number][]).sort(
    (a, b) => b[1] - a[1],
  ))
    line(`  ${kind}`, count)
  const reached = points.filter((point) => done.points[point] !== undefined)
  line('points reached', `${reached.length} of ${points.length}`)
  for (const point of points) line(`  ${point}`, done.points[point] ?? 'not reached')
  line('violations', done.failed ? 1 : 0)
  line('history', done.hash)
  line(
    'time',
    `${seconds.toFixed(0)} s, ${Math.round(done.faults / seconds)} faults a second by ${processes} processes`,
  )
  return lines
}

const hunt = async (which: string): Promise<void> => {
  const chosen = planted.filter(
    ({ bug: { name } }) => which === 'all' || which.split(',').includes(name),
  )
  const rows = new Map<string, { readonly found: boolean; readonly text: string }>()
  const left = [...chosen]
  const of = sources()
  const one = async (): Promise<void> => {
    for (let next = left.shift(); next; next = left.shift()) {
      const { bug, world } = next
      const budget = values.faults ?? bug.budget ?? BUDGET
      const { failed, faults } = await (world === null
        ? hunted(bug, seed, budget)
        : huntedIn(world, bug, seed, budget))
      const found = failed !== null
      const text = `${bug.name.padEnd(32)}${(failed?.rule ?? 'not found').padEnd(12)}${String(faults).padStart(8)} of ${String(budget).padStart(7)}  ${of.padEnd(16)}  ${bug.why}`
      rows.set(bug.name, { found, text })
      console.error(`${rows.size} of ${chosen.length}: ${text}`)
    }
  }
  await Promise.all(Array.from({ length: processes }, one))
  const count = [...rows.values()].filter(({ found }) => found).length
  const head = `${'bug'.padEnd(32)}${'found by'.padEnd(12)}  faults of  budget  sources           breaks`
  for (const line of [head, ...chosen.map(({ bug: { name } }) => rows.get(name)?.text ?? name)])
    console.log(line)
  console.log(`${count} of ${chosen.length} found`)
  if (values.record)
    recordRows(
      `npm run sim -- --planted all --seed ${seed}`,
      head,
      new Map([...rows].map(([name, { text }]) => [name, text])),
      names,
    )
  if (count < chosen.length) process.exitCode = 1
}

/** Worlds that a process plays at once, so that none waits long for the last. */
const AT_ONCE = 50

const crash = async (many: number): Promise<void> => {
  const began = performance.now()
  const players = await Promise.all(Array.from({ length: processes }, () => startPlayer(null)))
  const lines: string[] = []
  let [worlds, faults, broken] = [0, 0, 0]
  for (const [scenario, plan] of Object.entries(scenarios)) {
    const calls = await callsOf(plan)
    const all = [...singles(calls), ...pairs(calls.length, many, seed)]
    const left = Array.from({ length: Math.ceil(all.length / AT_ONCE) }, (_each, i) =>
      all.slice(i * AT_ONCE, (i + 1) * AT_ONCE),
    )
    let [played, met] = [0, 0]
    await Promise.all(
      players.map(async (player) => {
        for (let part = left.shift(); part; part = left.shift()) {
          const struck = await player.strike({ scenario, strikes: part })
          played += struck.worlds
          met += struck.faults
          if (!struck.failed) continue
          broken += 1
          console.log(`${scenario}: ${struck.failed.rule}: ${struck.failed.message}`)
          console.log(`npm run sim -- --plan '${JSON.stringify(struck.failed.plan)}'`)
        }
      }),
    )
    worlds += played
    faults += met
    lines.push(
      `${scenario.padEnd(40)}${String(calls.length).padStart(5)} calls${String(played).padStart(7)} worlds`,
    )
    console.error(lines.at(-1))
  }
  for (const player of players) player.stop()
  tell('Crash points', `npm run sim -- --crash-points ${many} --seed ${seed}`, [
    ...lines,
    `${worlds} worlds, ${faults} strikes that met their call, ${broken} violations, ${Math.round((performance.now() - began) / 1_000)} s by ${processes} processes`,
  ])
  if (broken > 0) process.exitCode = 1
}

if (values.crashPoints !== undefined) await crash(values.crashPoints)
else if (values.planted !== undefined) await hunt(values.planted)
else if (values.plan !== undefined) await replay(values.plan as Plan)
else if (values.world !== undefined) await replay(planOf(seed, values.world))
else await batch(values.faults ?? 100_000)
