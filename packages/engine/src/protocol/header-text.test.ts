import { expect, test } from 'vitest'
import { headerText, textOfHeader } from './header-text.ts'

test.each(['ana', 'Łukasz', '名前', ' ana ', "UTF-8''ana", 'José', '100%', 'a, b; c="d"'])(
  'OPS-02 a name comes out of a header as it went in: %j',
  (name) => {
    const value = headerText(name)
    expect(value).toMatch(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/)
    expect(textOfHeader(value)).toBe(name)
  },
)

test('OPS-02 a plain name stands in a header as it is', () => {
  expect(headerText('ana lee')).toBe('ana lee')
})

test('OPS-02 a value that nobody encoded is read as the UTF-8 that a shell sends, else as Latin-1', () => {
  expect(textOfHeader(Buffer.from('Łukasz').toString('latin1'))).toBe('Łukasz')
  expect(textOfHeader('José')).toBe('José')
  expect(textOfHeader("UTF-8''%zz")).toBeNull()
})
