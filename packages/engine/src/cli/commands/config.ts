// `leasehold config`: the configuration in force, each value with where it comes from, secrets hidden.
import type { Run } from '../call.ts'
import type { Value } from '../config/load-config.ts'
import { loadConfig } from '../config/load-config.ts'
import { exit } from '../exit.ts'
import { table } from '../said.ts'

export const run: Run = async ({ options, out, sources }) => {
  const { values } = loadConfig(sources, { serves: true })
  if (options.json)
    out.json(
      Object.fromEntries(
        values.map((each) => [each.name, { value: shown(each), origin: each.origin }]),
      ),
    )
  else
    table(
      out,
      ['setting', 'value', 'from'],
      values.map((each) => [each.name, textOf(shown(each)), each.origin]),
      (cell, column) => (column === 2 ? out.colors.dim(cell) : cell),
    )
  return exit.ok
}

/** What is secret is hidden; that there is none is not. */
const shown = ({ value, secret }: Value): unknown =>
  secret && !isNothing(value) ? 'hidden' : value

const isNothing = (value: unknown): boolean =>
  value === null || (typeof value === 'object' && Object.keys(value).length === 0)

const textOf = (value: unknown): string =>
  isNothing(value) ? '-' : typeof value === 'string' ? value : JSON.stringify(value)
