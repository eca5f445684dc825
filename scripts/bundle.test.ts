import { expect, test } from 'vitest'
import { licences } from './bundle.ts'

const files: Record<string, string> = {
  'node_modules/zod/LICENSE': 'MIT, of zod\n',
  'node_modules/@hono/node-server/LICENSE': 'MIT, of hono\n',
}
const read = (file: string): string | null => files[file] ?? null

test('each package that is bundled stands once with its licence, and our own files not at all', () => {
  const text = licences(
    [
      'packages/engine/src/cli/main.ts',
      'node_modules/zod/index.js',
      'node_modules/zod/v4/core.js',
      'node_modules/@hono/node-server/dist/index.mjs',
    ],
    read,
  )
  expect(text.split('-'.repeat(80)).map((part) => part.trim())).toEqual([
    '@hono/node-server\n\nMIT, of hono',
    'zod\n\nMIT, of zod',
  ])
})

test('a package without a licence is not bundled', () => {
  expect(() => licences(['node_modules/bare/index.js'], read)).toThrow('without its licence')
})
