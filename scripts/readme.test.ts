import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { root } from './files.ts'

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')

test.each(readdirSync(path.join(root, 'docs/guide')))(
  'OPS-03 the README leads to docs/guide/%s',
  (page) => {
    expect(read('README.md')).toContain(`](docs/guide/${page})`)
  },
)

test.each(
  Object.keys(
    (JSON.parse(read('packages/engine/package.json')) as { exports: Record<string, unknown> })
      .exports,
  ).filter((entry) => entry !== './package.json'),
)('DX-02 the README of the package says what %s brings', (entry) => {
  expect(read('packages/engine/README.md')).toContain(`| \`leasehold${entry.slice(1)}\``)
})

test.each(readdirSync(path.join(root, 'docs/adr')).filter((file) => /^\d/.test(file)))(
  'DX-02 the index of decisions leads to %s',
  (file) => {
    expect(read('docs/adr/README.md')).toContain(`](${file})`)
  },
)
