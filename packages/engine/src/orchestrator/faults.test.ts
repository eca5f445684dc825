import { expect, it } from 'vitest'
import * as z from 'zod'
import { faultsOf, pathText } from './faults.ts'

it('RUN-23 a fault is told with its path, whose middle is left out where it is very long', () => {
  expect(pathText(['labels', 0, 'a b'])).toBe('$.labels[0]["a b"]')
  const deep = pathText(Array.from({ length: 900 }, () => 0))
  expect(deep).toMatch(/^\$(\[0\])+.* characters left out … .*\[0\]$/)
  expect(deep.length).toBeLessThan(450)
  const read = z.strictObject({}).safeParse({ ['x'.repeat(10_000)]: 1 })
  expect(faultsOf(read.error as z.ZodError)[0]?.path.length).toBeLessThan(450)
})
