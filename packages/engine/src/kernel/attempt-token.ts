// What lets one process into the engine for one attempt and nothing else (RAIL-14): who it is for, in the open, under a hash
// that only a server of this store can make.
import { keyedHash, sameText } from './digest.ts'

/** The attempt that its bearer may adopt, and the session that it is for. */
export interface AttemptGrant {
  /** The session of whoever bears it; it has no other. */
  readonly session: string
  /** The session that holds the attempt until then. */
  readonly from: string
  readonly run: string
  readonly attempt: number
  /** Until when it may begin, in ms since the epoch by the store's clock. */
  readonly startBy: number
}

const PREFIX = 'lsa1.'

export const isAttemptToken = (text: string): boolean => text.startsWith(PREFIX)

const hashOf = (key: string, body: string): string => keyedHash(key, `attempt token ${body}`)

export const attemptToken = (key: string, grant: AttemptGrant): string => {
  const body = Buffer.from(JSON.stringify(grant)).toString('base64url')
  return `${PREFIX}${body}.${hashOf(key, body)}`
}

/** What a token says of itself, unproven; null where it is none. */
export const readAttemptToken = (text: string): AttemptGrant | null => {
  if (!isAttemptToken(text)) return null
  const [body = ''] = text.slice(PREFIX.length).split('.')
  try {
    const read: unknown = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'))
    const { session, from, run, attempt, startBy } = (read ?? {}) as Readonly<
      Record<string, unknown>
    >
    return typeof session === 'string' &&
      typeof from === 'string' &&
      typeof run === 'string' &&
      typeof attempt === 'number' &&
      typeof startBy === 'number'
      ? { session, from, run, attempt, startBy }
      : null
  } catch {
    return null
  }
}

/** What a token grants; null where no server of this store has made it. */
export const provenGrant = (key: string, text: string): AttemptGrant | null => {
  const [body = '', hash = '', ...more] = text.slice(PREFIX.length).split('.')
  if (!isAttemptToken(text) || more.length > 0 || !sameText(hash, hashOf(key, body))) return null
  return readAttemptToken(text)
}
