import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LONGEST_MS, milliseconds, inWords } from './duration.ts'

describe('RUN-29 durations', () => {
  it('RUN-29 are read as people write them', () => {
    const cases: [string | number, number][] = [
      [0, 0],
      [1_500, 1_500],
      ['250ms', 250],
      ['10s', 10_000],
      ['10m', 600_000],
      ['1h 30m', 5_400_000],
      ['1h30m', 5_400_000],
      [' 2 d ', 172_800_000],
      ['1w', 604_800_000],
      ['1.5h', 5_400_000],
    ]
    for (const [text, ms] of cases) expect(milliseconds(text)).toBe(ms)
  })

  it('RUN-29 are whole, and never shorter than what was written', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000_000_000), (thousandths) => {
        const ms = thousandths / 1_000
        const read = milliseconds(ms)
        return Number.isInteger(read) && read >= ms && read < ms + 1
      }),
    )
  })

  it('RUN-29 beyond 2³¹ ms are kept', () => {
    expect(milliseconds(2 ** 31)).toBe(2_147_483_648)
    expect(milliseconds('60d')).toBe(5_184_000_000)
    expect(milliseconds(LONGEST_MS)).toBe(LONGEST_MS)
  })

  it('RUN-29 that nobody can wait for are refused by name, with what was found', () => {
    const wrong: unknown[] = [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      -1,
      '-5m',
      LONGEST_MS + 1,
      '',
      '10',
      'soon',
      '5 minutes',
      '1h,30m',
      '99999999w',
      null,
      {},
      true,
    ]
    for (const each of wrong)
      expect(() => milliseconds(each as string, 'sleep nap')).toThrow(
        expect.objectContaining({
          code: 'invalid_duration',
          message: expect.stringContaining(`sleep nap is ${String(each)}`) as string,
        }),
      )
  })

  it('RUN-29 a long text of digits is judged in no time', () => {
    expect(() => milliseconds(`${'1'.repeat(50_000)}x`)).toThrow(/duration is/)
    expect(() => milliseconds(`${'1s '.repeat(50_000)}x`)).toThrow(/duration is/)
  })
})

describe('durations in sentences', () => {
  it('OPS-02 are said in their two largest units', () => {
    const said = [
      0, 1, 999, 1_000, 2_500, 59_999, 60_000, 90_000, 600_000, 3_600_000, 5_400_000, 187_200_000,
    ]
    expect(said.map(inWords)).toEqual([
      '0 ms',
      '1 ms',
      '999 ms',
      '1 s',
      '2.5 s',
      '59.9 s',
      '1 min',
      '1 min 30 s',
      '10 min',
      '1 h',
      '1 h 30 min',
      '2 d 4 h',
    ])
  })
})
