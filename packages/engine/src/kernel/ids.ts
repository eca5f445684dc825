// Ids: a noun, nine characters of time, three of a counter, seven of chance. They sort by the time of their making
// within one process and carry what they name. Each costs one number from the port, since a start makes two.
import { digest } from './digest.ts'
import type { Random } from './random.ts'
import type { Time } from './time.ts'

export type Noun = 'run' | 'ses' | 'cmd' | 'sig' | 'ord' | 'own' | 'sch'

export interface Ids {
  /** A new id such as `run_0k3v1hm2s001c4u8t1q`. */
  next(noun: Noun): string
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuv'
const COUNTER_MAX = 32 ** 3 - 1

const base32 = (value: number, length: number): string => {
  let text = ''
  for (let i = 0, rest = value; i < length; i++) {
    text = ALPHABET.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  return text
}

export const mintIds = (time: Time, random: Random): Ids => {
  let last = 0
  let prefix = ''
  let counter = 0
  return {
    next(noun) {
      const now = time.now()
      if (now > last) {
        last = now
        counter = 0
        prefix = base32(last, 9)
      } else if (counter === COUNTER_MAX) {
        last += 1
        counter = 0
        prefix = base32(last, 9)
      }
      counter += 1
      return `${noun}_${prefix}${base32(counter, 3)}${base32(Math.floor(random.next() * 2 ** 32), 7)}`
    },
  }
}

/** An id that follows from an instant and a text: the same each time it is made, and it sorts as one made at that instant. */
export const idOf = (noun: Noun, at: number, text: string): string => {
  const tail = [...digest(text)].slice(0, 10).map((byte) => ALPHABET.charAt(byte % 32))
  return `${noun}_${base32(Math.max(0, at), 9)}${tail.join('')}`
}
