// The tokens that a server asks for, by role; none at all means that only this machine may call.
import type { Config } from './config.ts'

interface Token {
  readonly token: string
  readonly role: 'viewer' | 'operator' | 'executor' | 'admin'
}

export const tokensOf = (config: Config): Token[] =>
  (
    [
      [config.token, 'admin'],
      [config.operatorToken, 'operator'],
      [config.viewerToken, 'viewer'],
      [config.executorToken, 'executor'],
    ] as const
  ).flatMap(([token, role]) => (token === null ? [] : [{ token, role }]))
