// `npm run slots -- --years 10`: every slot of fifty cron expressions in twelve time zones for so many years, as the calendar of
// schedules gives them, against an independent enumeration. It answers how many it has looked at and how many are wrong. Expressions
// that tick every few minutes are looked at for a week in every so many (`--every 13`); `--every 1` looks at all of them, for hours.
import { parseArgs } from 'node:util'
import type { Wrong } from '../packages/engine/test/support/enumeration.ts'
import {
  compared,
  often,
  segmentsOf,
  seldom,
  zones,
} from '../packages/engine/test/support/enumeration.ts'
import { isMain } from './files.ts'

const WEEK = 7 * 86_400_000
const FIRST_YEAR = 2026

export interface Slots {
  readonly looked: number
  readonly wrong: readonly Wrong[]
}

export const slotsOf = (
  years: number,
  every: number,
  of: {
    readonly zones: readonly string[]
    readonly seldom: readonly string[]
    readonly often: readonly string[]
  } = { zones, seldom, often },
): Slots => {
  const [from, to] = [FIRST_YEAR, FIRST_YEAR + years].map((year) => Date.UTC(year, 0, 1)) as [
    number,
    number,
  ]
  let looked = 0
  const wrong: Wrong[] = []
  const look = (
    cron: string,
    ...rest: [string, ReturnType<typeof segmentsOf>, number, number]
  ): void => {
    const found = compared(cron, ...rest)
    looked += found.ticks
    wrong.push(...found.wrong)
  }
  for (const zone of of.zones) {
    const segments = segmentsOf(zone, from, to)
    for (const cron of of.seldom) look(cron, zone, segments, from, to)
    for (let week = 0, at = from; at < to; week += 1, at += WEEK) {
      if (week % every !== 0) continue
      const end = Math.min(to, at + WEEK)
      // a day more on either side, since the walls of a zone are not those of UTC
      const near = segments
        .filter((each) => each.to > at - WEEK && each.from < end + WEEK)
        .map((each) => ({
          ...each,
          from: Math.max(each.from, at - WEEK / 7),
          to: Math.min(each.to, end + WEEK / 7),
        }))
        .filter((each) => each.from < each.to)
      for (const cron of of.often) look(cron, zone, near, at, end)
    }
  }
  return { looked, wrong }
}

if (isMain(import.meta.url)) {
  const { values } = parseArgs({
    options: { years: { type: 'string', default: '10' }, every: { type: 'string', default: '13' } },
  })
  const [years, every] = [Number(values.years), Number(values.every)]
  if (!(years >= 1 && every >= 1 && Number.isInteger(years) && Number.isInteger(every)))
    throw new Error('--years and --every are whole numbers of 1 or more')
  const { looked, wrong } = slotsOf(years, every)
  for (const each of wrong) console.log(JSON.stringify(each))
  console.log(
    `${looked.toLocaleString('en-US')} slots in ${years} years × ${zones.length} zones × ${seldom.length + often.length} expressions: ${wrong.length} wrong`,
  )
  process.exitCode = wrong.length > 0 ? 1 : 0
}
