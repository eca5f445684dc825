import { expect, test } from 'vitest'
import { errorsPage } from './errors.ts'

test('codes are listed by kind and name, and kinds without codes are left out', () => {
  const page = errorsPage({
    store_busy: { kind: 'fault', status: 503, what: 'It is busy.', todo: 'Try again.' },
    stale_attempt: { kind: 'refusal', status: 409, what: 'Another | holds it.', todo: 'Drop it.' },
    missing: { kind: 'refusal', status: 404, what: 'No such run.', todo: 'Check the id.' },
  })
  expect(page.indexOf('## refusal')).toBeLessThan(page.indexOf('## fault'))
  expect(page.indexOf('`missing`')).toBeLessThan(page.indexOf('`stale_attempt`'))
  expect(page).toContain('| `stale_attempt` | 409 | Another \\| holds it. | Drop it. |')
  expect(page).not.toContain('## defect')
})
