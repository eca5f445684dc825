// The commands that a stranger runs in a checkout: small, but as they are.
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { start } from './processes.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

const npmRun = async (script: string, ...args: string[]): Promise<string> => {
  const started = start('npm', ['run', '--silent', script, '--', ...args], { cwd: root })
  const code = await started.ended
  expect(code, started.out() + started.err()).toBe(0)
  return started.out()
}

test('PROOF-08 npm run sim plays worlds from a seed and names the history that came of it', async () => {
  const said = await npmRun('sim', '--faults', '200', '--seed', '3')
  expect(said).toMatch(/history\s+[0-9a-f]{8}\b/)
})

test('npm run bench measures a figure and prints it for machines', async () => {
  const { settings, rows } = JSON.parse(
    await npmRun('bench', '--quick', '--only', 'P15', '--json'),
  ) as { settings: string; rows: { id: string; ours: { median: number } }[] }
  expect(settings).toContain(`Node ${process.versions.node}`)
  expect(rows.map(({ id }) => id)).toEqual(['P15', 'P15'])
  for (const { ours } of rows) expect(ours.median).toBeGreaterThan(0)
})
