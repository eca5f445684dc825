import { expect, test } from 'vitest'
import { defaults, settingsFaults } from './settings.ts'

test.each(['leaseMs', 'renewMs', 'sweepMs', 'pollMs'] as const)(
  'B093 a %s of nothing is refused, since it would be a loop without rest or a lease that nobody can keep',
  (name) => {
    expect(settingsFaults({ ...defaults, [name]: 0 })).toContain(
      `${name} is 0; expected a duration of 1 ms or more`,
    )
    expect(settingsFaults({ ...defaults, renewMs: 1, [name]: 3 })).toEqual([])
  },
)
