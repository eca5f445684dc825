import { describe, expect, it } from 'vitest'
import { checksum, keyedHash, sameText } from './digest.ts'

describe('RUN-18 the keyed hash of an input', () => {
  it('RUN-18 is HMAC-SHA-256, by a vector of RFC 4231', () => {
    const vector = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'
    const hash = keyedHash('Jefe', 'what do ya want for nothing?')
    expect(Buffer.from(hash, 'base64url').toString('hex')).toBe(vector)
  })

  it('RUN-18 differs by key and by text', () => {
    expect(new Set([keyedHash('a', 'x'), keyedHash('b', 'x'), keyedHash('a', 'y')]).size).toBe(3)
  })
})

describe('RAIL-18 checksums', () => {
  it('RAIL-18 are SHA-256', () => {
    expect(checksum('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })
})

describe('S21 comparing secrets', () => {
  it('S21 says whether two texts are equal, of any two lengths', () => {
    expect([sameText('a', 'a'), sameText('a', 'b'), sameText('', 'abc')]).toEqual([
      true,
      false,
      false,
    ])
  })
})
