import { describe, expect, it } from 'vitest'
import { at, isName, limitKey, mustName, redefined } from './definition.ts'

const polluted: unknown = JSON.parse('{"__proto__":{"id":"p"},"constructor":"c","a":{"b":7}}')

describe('SLOT-01 keys from the input', () => {
  it('SLOT-01 fills every path of a template', () => {
    expect(limitKey('customer:{customer.id}:{region}', { customer: { id: 7 }, region: 'eu' })).toBe(
      'customer:7:eu',
    )
    expect(limitKey('plain', null)).toBe('plain')
    expect(limitKey('k:{input.id}', { id: true })).toBe('k:true')
  })

  it('SLOT-01 is undefined where a path leads to nothing that can name a limit', () => {
    for (const input of [{}, { id: null }, { id: {} }, { id: [] }, null, 'text'])
      expect(limitKey('k:{id}', input)).toBeUndefined()
  })
})

describe('RUN-31 paths are data', () => {
  it('RUN-31 __proto__ and constructor lead to data where the input has it, and nowhere else', () => {
    expect(limitKey('k:{__proto__.id}', polluted)).toBe('k:p')
    expect(limitKey('k:{constructor}', polluted)).toBe('k:c')
    for (const path of ['__proto__', 'constructor', 'constructor.name', 'toString', 'a.toString'])
      expect(at({ a: { b: 1 } }, path)).toBeUndefined()
    expect(at('text', 'length')).toBeUndefined()
    expect(({} as Record<string, unknown>)['id']).toBeUndefined()
  })

  it('SLOT-01 a dotted path may begin with input, and the empty path is the input', () => {
    expect(at({ a: { b: 7 } }, 'input.a.b')).toBe(7)
    expect(at({ inputs: 3 }, 'inputs')).toBe(3)
    expect(at(5, 'input')).toBe(5)
    expect(at([1, 2], '1')).toBe(2)
  })
})

describe('names', () => {
  it('RUN-22 are 1 to 200 characters without control characters or lone surrogates', () => {
    expect(['a', 'x'.repeat(200), 'größe 😀'].every(isName)).toBe(true)
    const unfit = [
      '',
      'x'.repeat(201),
      'a\u0000',
      'a\n',
      '\u007f',
      '\ud800',
      'a\udc00b',
      '.',
      '..',
      7,
      null,
    ]
    expect(unfit.filter(isName)).toEqual([])
    expect(() => mustName('a\n', 'queue of w')).toThrow(/queue of w is "a\\n"/)
    expect(() => mustName(undefined, 'workflow name')).toThrow(/missing/)
  })
})

describe('RUN-23 a version that is registered again', () => {
  it('RUN-23 differs by what its members say, whatever their order, and not by what a build left out', () => {
    expect(redefined({ a: { x: 1, y: 2 } }, { a: { y: 2, x: 1 }, later: null })).toBeNull()
    expect(redefined({ gone: 1, same: [1] }, { came: 2, same: [1] })).toEqual({
      gone: { was: 1, is: null },
      came: { was: null, is: 2 },
    })
  })
})
