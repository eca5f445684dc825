// What real processes take, and who gives it back: after the work, after a kill, and after an operator has seen to it.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { fixture, folder, leasehold, ran, runThat, serve, until } from './processes.ts'

const place = async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd)
  const input = {
    file: path.join(cwd, 'things.txt'),
    jam: path.join(cwd, 'jam'),
    gate: path.join(cwd, 'gate'),
  }
  const lines = (): string[] =>
    existsSync(input.file) ? readFileSync(input.file, 'utf8').trim().split('\n') : []
  const work = async () => {
    const executor = leasehold(['work', fixture('takes.js'), '--url', url], { cwd })
    await executor.line(' works at ')
    return executor
  }
  return { cwd, url, client, input, lines, work }
}

test('EX-15 EX-16 EX-26 what a killed process held is released, and its files are removed, by the next start on this host', async () => {
  const { client, input, lines, work } = await place()
  const first = await work()
  const { id } = await client.start('takes', input)
  // what it has taken is noted before its function is called, and after its preparation has written its line
  await until(() => lines().includes('works'))
  const directory = lines()[0]?.split(' ')[2] ?? ''
  expect(existsSync(path.join(directory, 'made'))).toBe(true)
  first.kill('SIGKILL')
  await first.ended
  expect(existsSync(directory)).toBe(true)

  await work()
  await until(() => lines().includes('release 1'))
  expect(existsSync(directory)).toBe(false)
  // and the run goes on in a directory of its next attempt, which is gone at its end
  writeFileSync(input.gate, '')
  const { run } = await runThat(client, id, (detail) => detail.run.status === 'succeeded')
  expect(run.status).toBe('succeeded')
  const next = await until(
    () =>
      lines()
        .find((line) => line.startsWith('take 2'))
        ?.split(' ')[2],
  )
  await until(() => lines().includes('release 2') && !existsSync(next))
}, 240_000)

test('EX-15 an executor that could not release takes nothing new until an operator clears it from the command line', async () => {
  const { cwd, url, client, input, lines, work } = await place()
  writeFileSync(input.jam, '')
  writeFileSync(input.gate, '')
  await work()
  const { id } = await client.start('takes', input)
  await runThat(client, id, (detail) => detail.run.status === 'succeeded')
  const shown = await until(async () => {
    const { err } = await ran(['executors', '--url', url], { cwd })
    return err.includes('unreleased') && err
  })
  expect(shown).toContain(`keeps a slot for ${id} (unreleased)`)
  expect(shown).toContain('the thing is jammed')
  const { id: other } = await client.start('light', {})
  const wrong = await ran(['executors', '--url', url, '--clear', 'run_none'], { cwd })
  expect(wrong).toMatchObject({ code: 3 })
  expect((await client.get(other)).run.status).toBe('queued')

  rmSync(input.jam)
  const cleared = await ran(['executors', '--url', url, '--clear', id], { cwd })

  expect(cleared).toMatchObject({ code: 0 })
  expect(cleared.out).toContain(`told that ${id} is seen to`)
  await runThat(client, other, (detail) => detail.run.status === 'succeeded')
  expect(lines().filter((line) => line.startsWith('release'))).toEqual([])
}, 240_000)
