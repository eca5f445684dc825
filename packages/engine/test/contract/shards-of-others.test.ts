// Which cases do not run on several databases is a list, and a list of cases that are no more says nothing.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ON_ONE } from '../support/one-database.ts'

test('RUN-18 every case that is named as of one database alone is there', () => {
  for (const [file, cases] of Object.entries(ON_ONE)) {
    const text = readFileSync(new URL(`./${file}.test.ts`, import.meta.url), 'utf8')
    const missing = cases.map(([title]) => title).filter((title) => !text.includes(title))
    expect({ file, missing }).toEqual({ file, missing: [] })
  }
})
