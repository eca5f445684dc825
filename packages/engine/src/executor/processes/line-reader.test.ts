import { describe, expect, it } from 'vitest'
import { cutText } from '../../model/log.ts'
import { lineReader } from './line-reader.ts'

const read = (...pieces: string[]) => {
  const lines: { text: string; missing: number }[] = []
  const reader = lineReader((text, missing) => lines.push({ text, missing }))
  for (const piece of pieces) reader.read(piece)
  reader.end()
  return lines
}

describe('EX-25 lines out of what a process prints', () => {
  it('EX-25 pieces make lines wherever they are cut, and what does not end is a line at the end', () => {
    expect(read('a', 'b\nc\r\n\nd').map(({ text }) => text)).toEqual(['ab', 'c', '', 'd'])
    expect(read('a\n')).toEqual([{ text: 'a', missing: 0 }])
    expect(read()).toEqual([])
  })

  it('EX-25 of a line without end its beginning and its end are kept, and the rest is counted', () => {
    const [line] = read('<', ...Array.from({ length: 300 }, () => 'x'.repeat(1_000)), '>\n')
    expect(line?.text).toHaveLength(64 * 1024)
    expect(line?.text.startsWith('<x')).toBe(true)
    expect(line?.text.endsWith('x>')).toBe(true)
    expect(line?.missing).toBe(300_002 - 64 * 1024)
  })

  it('EX-25 a text is cut in its middle, between characters, and says by how much', () => {
    expect(cutText('abc', 8)).toBe('abc')
    expect(cutText('abcdefghij', 4)).toBe('ab … 6 characters left out … ij')
    expect(cutText('abcd', 4, 10)).toBe('ab … 10 characters left out … cd')
    expect(cutText('a😀bcdefg😀h', 4)).toBe('a … 8 characters left out … h')
  })
})
