// What can be said to `npm start`, as in `npm start -- --once --runs 50`.
import path from 'node:path'
import { parseArgs } from 'node:util'
import { root } from '../files.ts'

const TAKES =
  'npm start -- takes --once (end when the example is done), --runs <number> (of its payloads; else all) and --home <folder> (where its files are kept).'

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
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) {
      console.log(TAKES)
      process.exit(0)
    }
    const runs = Number(values.runs)
    if (!(runs >= 1)) throw new Error(`--runs is ${values.runs}; expected a number of 1 or more`)
    return { once: values.once, runs, home: path.resolve(values.home) }
  } catch (error) {
    console.error(`npm start: ${(error as Error).message}\n${TAKES}`)
    process.exit(2)
  }
}

export const { once, runs, home } = read()
