// The example of a bot as a person runs it: real processes that are killed, a forge that fails, and what it checks at its end.
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { start } from './processes.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

test('RAIL-07 RAIL-15 the bot for a forge goes on through kills and a failing forge, asks once and reports once', async () => {
  const run = start(process.execPath, ['--import', 'tsx', 'examples/forge-bot/run.ts'], {
    cwd: root,
  })
  const code = await run.ended
  expect(run.err()).not.toContain('Error')
  expect(code).toBe(0)
  expect(run.out().match(/checked: /g)).toHaveLength(9)
})
