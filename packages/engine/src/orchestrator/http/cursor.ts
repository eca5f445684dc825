// Places in a list, as texts that are handed out and come back: one of another list, or that was cut or made up, is refused
// instead of leading somewhere.
import { checksum } from '../../kernel/digest.ts'
import type { Outcome } from '../../kernel/outcome.ts'
import { invalid } from '../faults.ts'

type List = 'runs' | 'approvals' | 'notices' | 'deliveries' | 'spawns'

const cursorOf = (list: List, place: string): string => {
  const text = Buffer.from(place).toString('base64url')
  return `${list}.${text}.${checkOf(list, text)}`
}

/** The place that a cursor names; null where none is given. */
export const placeOf = (
  list: List,
  cursor: string | undefined,
): Outcome<{ readonly place: string | null }> => {
  if (cursor === undefined) return { ok: true, place: null }
  const [name, text = '', check, ...more] = cursor.split('.')
  return name === list && check === checkOf(list, text) && more.length === 0
    ? { ok: true, place: Buffer.from(text, 'base64url').toString() }
    : invalid(
        [
          {
            path: 'query.cursor',
            message: `is not one that this list gave; expected what the page before said as next, or none for the first page`,
          },
        ],
        'request',
      )
}

const checkOf = (list: List, text: string): string => checksum(`${list} ${text}`).slice(0, 8)

/** A page whose end is told as a cursor. */
export const paged = <P extends { readonly next: string | null }>(list: List, page: P): P => ({
  ...page,
  next: page.next === null ? null : cursorOf(list, page.next),
})
