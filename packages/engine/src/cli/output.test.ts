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
