// The program into which a bug is built: plays worlds until one is violated or so many faults are counted.
import { run } from '../run.ts'

const [seed = '1', faults = '200000'] = process.argv.slice(2)
const batch = await run(Number(seed), Number(faults))
process.stdout.write(
  JSON.stringify({
    worlds: batch.worlds,
    faults: batch.faults,
    rule: batch.failed?.verdict.rule ?? null,
    message: batch.failed?.verdict.message ?? null,
    hash: batch.hash,
  }),
)
