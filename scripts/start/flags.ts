// What can be said to `npm start`, as in `npm start -- --once --runs 50`.
import path from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../files.ts'

const read = () => {
  try {
    const { values } = parseArgs({
      options: {
        /** End when the example is done; else the server stays up until Ctrl-C. */
        once: { type: 'boolean', default: process.env['CI'] === 'true' },
        /** How many of the payloads; else all. */
        runs: { type: 'string', default: 'Infinity' },
        /** Where the store, the logs and what the example writes are kept. */
        home: { type: 'string', default: path.join(root, '.leasehold') },
      },
    })
    const runs = Number(values.runs)
    if (!(runs >= 1)) throw new Error(`--runs is ${values.runs}; expected a number of 1 or more`)
    return { once: values.once, runs, home: path.resolve(values.home) }
  } catch (error) {
    console.error(
      `npm start: ${(error as Error).message}\nIt takes --once, --runs <number> and --home <folder>.`,
    )
    process.exit(2)
  }
}

export const { once, runs, home } = read()
