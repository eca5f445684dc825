// One measurement in a process of its own: `measure.js <side> <figure> <n> <place>` answers one line of JSON. The place is
// a folder for a SQLite file, or the URL of an empty PostgreSQL database.
import { postgresLimits } from './limit-postgres.ts'
import { limits } from './limit.ts'
import { longs } from './long.ts'
import { ours } from './ours.ts'
import { scales } from './scale.ts'

const [side = '', figure = '', n = '', place = ''] = process.argv.slice(2)
const limit = place.startsWith('postgres:') ? postgresLimits : limits
const measure = { ours: { ...ours, ...longs, ...scales }, limit }[side]?.[figure]
if (!measure) throw new Error(`there is no measurement ${side} ${figure}`)
const figures = await measure(place, Number(n))
process.stdout.write(`${JSON.stringify(figures)}\n`)
process.exit(0)
