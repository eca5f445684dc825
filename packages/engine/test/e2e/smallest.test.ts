// The smallest program: the whole engine inside one process, killed in the middle.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { folder, start, until } from './processes.ts'

/** It stands still after ten lines until there is a file `go`. */
const text = `import { appendFileSync, existsSync } from 'node:fs'
import { embedded, workflow } from 'leasehold'
const count = workflow('count', async (ctx) => {
  for (let i = 0; i < 20; i++) {
    await ctx.step(\`line \${i}\`, () => appendFileSync('lines.txt', \`\${i}\\n\`))
    await ctx.step(\`look \${i}\`, () => i < 9 || existsSync('go') || new Promise(() => {}))
  }
  return 'counted'
})
const engine = await embedded({ file: 'count.db', workflows: [count] })
const { id } = await engine.start(count, null, { key: 'once' })
console.log((await engine.result(id)).output)
await engine.close()
`

test('DX-02 a program under 15 lines survives kill -9 in the middle and finishes when it is run again', async () => {
  expect(text.trimEnd().split('\n').length).toBeLessThan(15)
  const cwd = folder()
  writeFileSync(path.join(cwd, 'count.mjs'), text)
  const lines = (): string[] => {
    try {
      return readFileSync(path.join(cwd, 'lines.txt'), 'utf8').trim().split('\n')
    } catch {
      return []
    }
  }
  const killed = start(process.execPath, ['count.mjs'], { cwd })
  await until(() => lines().length === 10, killed.err)
  killed.kill('SIGKILL')
  expect(await killed.ended).toBe('SIGKILL')

  writeFileSync(path.join(cwd, 'go'), '')
  const again = start(process.execPath, ['count.mjs'], { cwd })
  expect(await again.ended).toBe(0)

  expect(again.out()).toBe('counted\n')
  expect([...new Set(lines())]).toEqual(Array.from({ length: 20 }, (_, i) => String(i)))
  // at most the step that was in work has happened once more
  expect(lines().length).toBeLessThanOrEqual(21)
})
