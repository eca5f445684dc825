import fc from 'fast-check'
import { describe, it } from 'vitest'
import { heldDigest } from './work.ts'

const held = fc.uniqueArray(
  fc.record({ run: fc.string({ minLength: 1, maxLength: 24 }), attempt: fc.nat() }),
  { selector: ({ run, attempt }) => `${run}#${attempt}`, maxLength: 12 },
)

describe('RUN-10 the digest over what is held', () => {
  it('RUN-10 does not depend on order', () => {
    fc.assert(fc.property(held, (list) => heldDigest(list) === heldDigest([...list].reverse())))
  })

  it('RUN-10 tells a run too few, a run too many and another attempt', () => {
    fc.assert(
      fc.property(held, fc.nat(), (list, at) => {
        fc.pre(list.length > 0)
        const i = at % list.length
        const digest = heldDigest(list)
        const less = list.filter((_, j) => j !== i)
        const other = list.map((each, j) =>
          j === i ? { ...each, attempt: each.attempt + 1_000_000 } : each,
        )
        return (
          heldDigest(less) !== digest &&
          heldDigest([...list, { run: 'zz', attempt: 1 }]) !== digest &&
          heldDigest(other) !== digest
        )
      }),
    )
  })
})
