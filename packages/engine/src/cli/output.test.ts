import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { makeOutput } from './output.ts'

const written = (isTTY: boolean | undefined, env: NodeJS.ProcessEnv): string => {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY }) as unknown
  const output = makeOutput(stream as NodeJS.WriteStream, stream as NodeJS.WriteStream, env)
  output.line(output.colors.red('no'))
  return String((stream as PassThrough).read())
}

test('OPS-03 colours appear on a terminal only: not in a pipe, also where CI is set, and not with NO_COLOR', () => {
  expect(written(true, {})).toContain('\u001b[31m')
  expect(written(true, { NO_COLOR: '1' })).toBe('no\n')
  expect(written(undefined, { CI: 'true' })).toBe('no\n')
  expect(written(undefined, {})).toBe('no\n')
})

test('OPS-03 signs that turn the direction of a line are shown as what they are, and mean the same in JSON', () => {
  const stream = new PassThrough({ encoding: 'utf8' })
  const output = makeOutput(
    stream as unknown as NodeJS.WriteStream,
    stream as unknown as NodeJS.WriteStream,
    {},
  )
  const id = 'run\u202egnp.exe'
  for (const say of [output.line, output.note, output.error]) say(id)
  expect(String(stream.read())).toBe(
    'run\\u202egnp.exe\nrun\\u202egnp.exe\nleasehold: run\\u202egnp.exe\n',
  )
  output.json({ id })
  const json = String(stream.read())
  expect(json).not.toContain('\u202e')
  expect(JSON.parse(json)).toEqual({ id })
})
