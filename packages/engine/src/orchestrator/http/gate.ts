// Who may come in. Without tokens only this machine may, by its own names, so that no page of a browser can reach the
// server through a name that it has bent (DNS rebinding). With tokens each request carries one, compared in constant time.
import { sameText } from '../../kernel/digest.ts'
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import type { Role } from '../../protocol/route.ts'

export interface Token {
  readonly token: string
  readonly role: 'viewer' | 'operator' | 'executor' | 'admin'
}

const MAY: Readonly<Record<Token['role'], readonly Role[]>> = {
  viewer: ['public', 'viewer'],
  operator: ['public', 'viewer', 'operator'],
  executor: ['public', 'executor'],
  admin: ['public', 'viewer', 'operator', 'executor'],
}

/** Whether a host name can only mean this machine. */
export const isLoopback = (host: string): boolean => {
  const name = host.replace(/:\d*$/, '').toLowerCase()
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '[::1]' ||
    name === '::1' ||
    /^127(\.\d{1,3}){3}$/.test(name)
  )
}

/** What a request carries as `authorization: Bearer …`. */
export const bearerOf = (request: Request): string | null =>
  /^Bearer\s+(.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]?.trim() ?? null

/** Null lets the request in. */
export const gate = (tokens: readonly Token[]) => {
  /** `proven`: the caller has another token, which says itself what it opens. */
  return (request: Request, role: Role, proven = false): Refusal | null => {
    if (tokens.length === 0) return ofThisMachine(request)
    if (role === 'public' || proven) return null
    const given = bearerOf(request)
    if (given === null)
      return refuse('unauthorized', 'the request has no token; send `authorization: Bearer …`')
    // every token is compared, so that the time says nothing of which was near
    const matching = tokens.filter((each) => sameText(each.token, given))
    const [mine] = matching
    if (!mine) return refuse('unauthorized', 'the token of the request is not one of this server’s')
    if (MAY[mine.role].includes(role)) return null
    return refuse(
      'not_allowed',
      `a token of the role ${mine.role} may not call this; it needs ${role}`,
      {
        role: mine.role,
        needs: role,
      },
    )
  }
}

const ofThisMachine = (request: Request): Refusal | null => {
  const host = request.headers.get('host') ?? new URL(request.url).host
  if (!isLoopback(host))
    return refuse(
      'forbidden_origin',
      `the Host is ${host}; without a token this server answers only to names of its own machine, such as localhost`,
      { host },
    )
  const origin = request.headers.get('origin')
  if (origin === null) return null
  const from = URL.canParse(origin) ? new URL(origin).host : ''
  return isLoopback(from)
    ? null
    : refuse(
        'forbidden_origin',
        `the Origin is ${origin}; without a token only pages of this machine may call`,
        { origin },
      )
}
