// Where notices go, as configuration says it.
import type { NoticeKind } from './notice.ts'

interface Common {
  /** Small letters, digits and hyphens. */
  readonly name: string
  readonly kinds: readonly NoticeKind[]
}

export interface LogSinkConfig extends Common {
  readonly type: 'log'
}

export interface WebhookSinkConfig extends Common {
  readonly type: 'webhook'
  readonly url: string
  /** Each signs: more than one while they are exchanged. */
  readonly secrets: readonly string[]
  /** Whether it may be at an address that is not public. */
  readonly allowPrivate: boolean
}

export interface MailSinkConfig extends Common {
  readonly type: 'smtp'
  /** `smtp://` or `smtps://`, with a user where there is one. */
  readonly url: string
  readonly password: string | null
  readonly from: string
  /** One address: what one has taken is not sent to it again for another's sake. */
  readonly to: string
}

export interface GithubSinkConfig extends Common {
  readonly type: 'github'
  readonly api: string
  /** `owner/name`. */
  readonly repository: string
  /** An issue or pull request; `key`: the one that the run's key names, as `owner/name#12`. */
  readonly issue: number | 'key'
  readonly auth:
    | { readonly token: string }
    | { readonly app: string; readonly installation: number; readonly privateKey: string }
  readonly allowPrivate: boolean
}

export type SinkConfig = LogSinkConfig | WebhookSinkConfig | MailSinkConfig | GithubSinkConfig
