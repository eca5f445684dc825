import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LeaseholdError } from './errors.ts'
import { canonical, decode, DEPTH_MAX, encode, messageOf, plain } from './json.ts'

const refusal = (value: unknown): { path: unknown; what: unknown } => {
  try {
    encode(value)
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === 'not_serializable')
      return { path: error.detail['path'], what: error.detail['what'] }
    throw error
  }
  throw new Error('was not refused')
}
const deep = (levels: number): unknown => {
  let value: unknown = 1
  for (let i = 0; i < levels; i++) value = [value]
  return value
}

describe('S17 decode(encode(value)) is value', () => {
  it('RUN-31 any JSON value comes back as it went, with every kind of text and key', () => {
    const value = fc.jsonValue({ stringUnit: 'binary', maxDepth: 5 })
    fc.assert(
      fc.property(value, (each) => {
        expect(decode(encode(each))).toEqual(JSON.parse(JSON.stringify(each)))
      }),
      { numRuns: 500 },
    )
  })

  it('RUN-31 texts of any code units come back, NUL and lone surrogates too', () => {
    const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
    fc.assert(
      fc.property(units, (codes) => {
        const text = String.fromCharCode(...codes)
        expect(decode(encode({ [text]: text }))).toEqual(
          Object.defineProperty({}, text, { value: text, enumerable: true }),
        )
      }),
    )
    const text = encode('\u0000 \ud800 x')
    expect(text).toBe('"\\u0000 \\ud800 x"')
  })

  it('RUN-31 encoding twice is encoding once', () => {
    fc.assert(fc.property(fc.jsonValue(), (each) => encode(decode(encode(each))) === encode(each)))
  })

  it('RUN-31 a function that returns nothing has no text, null has one', () => {
    expect(encode(undefined)).toBeNull()
    expect(encode(null)).toBe('null')
    expect(decode(null)).toBeUndefined()
    expect(decode('null')).toBeNull()
  })

  it('RUN-31 __proto__ and constructor are data and change no object', () => {
    const value: unknown = JSON.parse('{"__proto__":{"bad":1},"constructor":{"prototype":2}}')
    const copy = plain(value) as Record<string, unknown>
    expect(JSON.stringify(copy)).toBe(JSON.stringify(value))
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>)['bad']).toBeUndefined()
    expect(canonical(value)).toBe('{"__proto__":{"bad":1},"constructor":{"prototype":2}}')
  })

  it('RUN-25 what is given back is a copy', () => {
    const value = { list: [1] }
    const copy = plain(value) as typeof value
    value.list.push(2)
    expect(copy).toEqual({ list: [1] })
  })

  it('RUN-31 what knows its own JSON is kept as that', () => {
    expect(decode(encode({ at: new Date(0) }))).toEqual({ at: '1970-01-01T00:00:00.000Z' })
    class Money {
      toJSON(): unknown {
        return { cents: 5, none: undefined }
      }
    }
    expect(encode(new Money())).toBe('{"cents":5}')
    expect(encode(Object.create(null))).toBe('{}')
  })

  it('RUN-31 absent members are absent', () => {
    expect(encode({ a: undefined, b: 1 })).toBe('{"b":1}')
  })
})

describe('RUN-31 what JSON cannot carry is refused with its path', () => {
  const cycle: Record<string, unknown> = { a: [] }
  ;(cycle['a'] as unknown[]).push(cycle)
  const throwing = Object.defineProperty({}, 'x', {
    enumerable: true,
    get() {
      throw new Error('no')
    },
  })
  class Plain {
    readonly x = 1
  }
  const cases: readonly [string, unknown, string, string][] = [
    ['a BigInt', { a: [1, 2n] }, '$.a[1]', 'a BigInt'],
    ['undefined in a list', [1, undefined], '$[1]', 'undefined'],
    ['a hole', Array(2), '$[0]', 'undefined'],
    ['NaN', { 'a b': Number.NaN }, '$["a b"]', 'NaN'],
    ['infinity', Number.NEGATIVE_INFINITY, '$', '-Infinity'],
    ['a Map', { m: new Map() }, '$.m', 'an instance of Map without toJSON'],
    ['a Set', new Set(), '$', 'an instance of Set without toJSON'],
    ['a class instance', [new Plain()], '$[0]', 'an instance of Plain without toJSON'],
    ['a function', { f: () => 1 }, '$.f', 'a function'],
    ['a symbol', { s: Symbol('s') }, '$.s', 'a symbol'],
    ['a cycle', cycle, '$.a[0]', 'a cycle'],
    ['a getter that throws', throwing, '$.x', 'a getter that throws (no)'],
    [
      'a toJSON that throws',
      {
        toJSON() {
          throw new Error('never')
        },
      },
      '$',
      'an object whose toJSON throws (never)',
    ],
    ['a toJSON that gives a BigInt', { a: { toJSON: () => 1n } }, '$.a', 'a BigInt'],
  ]
  for (const [name, value, path, what] of cases)
    it(`RUN-31 ${name}`, () => expect(refusal(value)).toEqual({ path, what }))

  it('RUN-31 one that goes too deep is refused by depth, not by a broken stack', () => {
    expect(encode(deep(DEPTH_MAX))).not.toBeNull()
    expect(refusal(deep(DEPTH_MAX + 1)).what).toBe(`nested more than ${DEPTH_MAX} deep`)
    expect(refusal(deep(200_000)).what).toBe(`nested more than ${DEPTH_MAX} deep`)
  })

  it('RUN-31 the same object twice is no cycle', () => {
    const same = { x: 1 }
    expect(encode([same, same])).toBe('[{"x":1},{"x":1}]')
  })
})

describe('RUN-18 equal inputs have equal text', () => {
  it('RUN-18 whatever the order of their keys', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue())
    fc.assert(
      fc.property(object, (each) => {
        const turned = Object.fromEntries(Object.entries(each).reverse())
        return canonical(each) === canonical(turned)
      }),
    )
    expect(canonical({ b: [{ d: 1, c: 2 }], a: 1 })).toBe('{"a":1,"b":[{"c":2,"d":1}]}')
    expect(canonical([1, 2])).not.toBe(canonical([2, 1]))
  })
})

describe('SLOT-11 a sentence from anything thrown', () => {
  it('SLOT-11 errors, texts, null and odd objects are all rendered', () => {
    const cyclic: Record<string, unknown> = {}
    cyclic['me'] = cyclic
    expect([new Error('e'), 'text', null, undefined, { a: 1 }, 5n, cyclic].map(messageOf)).toEqual([
      'e',
      'text',
      'null',
      'undefined',
      '{"a":1}',
      'something that cannot be shown',
      'something that cannot be shown',
    ])
  })
})
