// One measurement in a process of its own: `measure.js <side> <figure> <n> <folder>` answers one line of JSON.
import { limits } from './limit.ts'
import { longs } from './long.ts'
import { ours } from './ours.ts'

const [side = '', figure = '', n = '', dir = ''] = process.argv.slice(2)
const measure = { ours: { ...ours, ...longs }, limit: limits }[side]?.[figure]
if (!measure) throw new Error(`there is no measurement ${side} ${figure}`)
const figures = await measure(dir, Number(n))
process.stdout.write(`${JSON.stringify(figures)}\n`)
process.exit(0)
