// The torture as a command: real processes on a real PostgreSQL, struck again and again in the order of a seed.
//   npm run torture -- --minutes M --seed S     for M minutes (3); exits 1 when something does not hold
//   --cluster                                   on three nodes that fail over (Patroni), as root
//   --only K,K                                  strikes of these kinds alone, as 'plug pulled'
//   --servers N --executors N --people N        how many there are; one process more embeds the engine
import { parseArgs } from 'node:util'
import { report } from '../packages/engine/test/torture/report.ts'
import { strikeKinds } from '../packages/engine/test/torture/strikes.ts'
import { torture } from '../packages/engine/test/torture/torture.ts'
import { setup as build } from './built.ts'

const LEAST = { minutes: 0.1, seed: 0, servers: 1, executors: 1, people: 1 }
type Name = keyof typeof LEAST

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    seed: { type: 'string', default: '1' },
    servers: { type: 'string', default: '2' },
    executors: { type: 'string', default: '3' },
    people: { type: 'string', default: '40' },
    only: { type: 'string' },
    cluster: { type: 'boolean', default: false },
  },
})
const numberOf = (name: Name): number => {
  const number = Number(values[name])
  if (number >= LEAST[name] && (name === 'minutes' || Number.isSafeInteger(number))) return number
  console.error(`--${name} is ${values[name]}; expected a number of ${LEAST[name]} or more`)
  process.exit(2)
}
const [minutes, seed] = [numberOf('minutes'), numberOf('seed')]
const [servers, executors, people] = [
  numberOf('servers'),
  numberOf('executors'),
  numberOf('people'),
]

const kinds = strikeKinds(values.cluster)
const only = values.only?.split(',').map((name) => {
  const kind = kinds.find((each) => each === name)
  if (kind !== undefined) return kind
  console.error(`--only has ${name}; expected some of ${kinds.join(', ')}`)
  process.exit(2)
})

build()
console.log(
  `npm run torture -- --minutes ${minutes} --seed ${seed}${values.cluster ? ' --cluster' : ''}${values.only === undefined ? '' : ` --only '${values.only}'`}`,
)
const verdict = await torture({
  seed,
  strikingMs: minutes * 60_000,
  ...(only ? { only } : {}),
  servers,
  executors,
  people,
  cluster: values.cluster,
  tell: (line) => console.log(line),
})
for (const line of report(verdict)) console.log(line)
process.exit(verdict.violations.length > 0 ? 1 : 0)
