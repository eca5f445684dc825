// What the bearer of a token for one attempt may: begin the one session that it is for, adopt that attempt, and drive it. It opens
// nothing else, and no longer than its attempt lasts.
import type { AttemptGrant } from '../../kernel/attempt-token.ts'
import { isAttemptToken } from '../../kernel/attempt-token.ts'
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import type { RouteName } from '../../protocol/routes.ts'
import { bearerOf } from './gate.ts'

const MAY: readonly RouteName[] = [
  'register',
  'adopt',
  'journal',
  'write',
  'renew',
  'close',
  'logs',
  'listen',
]

/** The token for one attempt that a request has; null where it has none. */
export const attemptTokenOf = (request: Request): string | null => {
  const given = bearerOf(request)
  return given !== null && isAttemptToken(given) ? given : null
}

/** Null lets the bearer of a proven grant in; `sent` is its query and body. */
export const attemptGate = (
  { session, run, attempt }: AttemptGrant,
  name: RouteName,
  sent: Readonly<Record<string, unknown>>,
): Refusal | null => {
  const no = (why: string): Refusal =>
    refuse('not_allowed', `the token is for attempt ${attempt} of ${run} alone: ${why}`, {
      run,
      attempt,
    })
  if (!MAY.includes(name)) return no(`it may not call ${name}`)
  if (sent['session'] !== session) return no(`its session is ${session}`)
  if (name === 'adopt' && (sent['run'] !== run || sent['attempt'] !== attempt))
    return no('it may adopt no other')
  const announces = ['definitions', 'queues', 'labels'].some((key) => {
    const given = sent[key]
    return Array.isArray(given) && given.length > 0
  })
  return name === 'register' && announces ? no('its session serves nothing else') : null
}
