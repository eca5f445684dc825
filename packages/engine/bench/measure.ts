// One measurement in a process of its own: `measure.js <side> <figure> <n> <place> [<place to warm up in>]` answers one line
// of JSON. A place is a folder for a SQLite file, or the URL of an empty PostgreSQL database. Warming up is the same work at
// a fifth of the size, thrown away: what is measured is a process that has been up for a while, not its compiler.
import { aliveFigures } from './alive.ts'
import type { Figures } from './figures.ts'
import { postgresLimits } from './limit-postgres.ts'
import { limits } from './limit.ts'
import { longs } from './long.ts'
import { ours } from './ours.ts'
import { notifiers, railFigures } from './rail.ts'
import { scales } from './scale.ts'
import { stopFigures } from './stops.ts'

const [side = '', figure = '', n = '', place = '', warm] = process.argv.slice(2)
const limit = place.startsWith('postgres:') ? postgresLimits : limits
const sides: Readonly<
  Record<string, Readonly<Record<string, (place: string, n: number) => Figures | Promise<Figures>>>>
> = {
  ours: { ...ours, ...longs, ...scales, ...stopFigures, ...aliveFigures, ...railFigures },
  limit,
  notifier: notifiers,
}
const measure = sides[side]?.[figure]
if (!measure) throw new Error(`there is no measurement ${side} ${figure}`)
if (warm !== undefined) await measure(warm, Math.ceil(Number(n) / 100) * 20)
const figures = await measure(place, Number(n))
process.stdout.write(`${JSON.stringify(figures)}\n`)
process.exit(0)
