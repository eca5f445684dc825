// A program that embeds the engine on the database: drives runs as an executor does, and starts some of its own.
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { embedded } from 'leasehold'
import { jsonLog } from 'leasehold/executor'
import * as workflows from './workflows.js'

const { TORTURE_EFFECTS: file, TORTURE_SETTINGS, TORTURE_DATABASE, TORTURE_LABEL } = process.env

// people rest: so does this one, while what is there comes to its end
let resting = false
process.on('SIGUSR2', () => (resting = true))

const engine = await embedded({
  database: TORTURE_DATABASE,
  connections: 6,
  workflows: Object.values(workflows),
  labels: [TORTURE_LABEL],
  settings: JSON.parse(TORTURE_SETTINGS),
  log: jsonLog((line) => void process.stderr.write(`${line}\n`), Date.now),
})
process.stdout.write(`the engine is embedded in process ${process.pid}\n`)

let stopping = false
process.on('SIGTERM', () => {
  if (stopping) return
  stopping = true
  engine.close().then(
    () => process.exit(0),
    (error) => {
      process.stderr.write(`${error.stack}\n`)
      process.exit(1)
    },
  )
})

const note = (line) => appendFileSync(file, `${JSON.stringify(line)}\n`)
while (!stopping) {
  await pause(700)
  if (resting || stopping) continue
  const run = `run_${randomUUID()}`
  const input = { steps: 2, ms: 5 }
  note({ what: 'asked', run, workflow: 'chain', input })
  try {
    await engine.start('chain', input, { id: run })
    note({ what: 'started', run })
  } catch (error) {
    note({ what: 'not started', run, error: String(error) })
  }
}
