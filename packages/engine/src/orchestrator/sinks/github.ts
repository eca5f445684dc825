// A sink that comments on an issue or pull request. Each comment carries a marker with the notice's id; before one is sent
// that may have been sent already, the marker is looked for.
import { Fault } from '../../kernel/errors.ts'
import { signedClaims } from '../../kernel/jwt.ts'
import type { Outgoing, OutgoingAnswer } from '../../kernel/outgoing.ts'
import type { Time } from '../../kernel/time.ts'
import type { Message, Sink } from '../../model/delivery.ts'
import type { GithubSinkConfig } from '../../model/sinks.ts'
import { clipped, oneLine, payloadOf, titleOf } from './text.ts'
import { sentOf } from './webhook.ts'

interface Around {
  readonly outgoing: Outgoing
  readonly time: Time
}

const PAGE = 100
const PAGES = 10
/** Clocks may differ by so much before a comment of ours is overlooked. */
const APART_MS = 3_600_000
const COMMENTS_MAX = 16 * 1024 ** 2

export const githubSink = (config: GithubSinkConfig, { outgoing, time }: Around): Sink => {
  const { name, type, kinds, api, repository, allowPrivate } = config
  const authorize = authorization(config, { outgoing, time })

  const call = async (
    method: 'GET' | 'POST',
    path: string,
    signal: AbortSignal,
    body?: object,
  ): Promise<OutgoingAnswer> => {
    const answer = await outgoing({
      method,
      url: `${api}${path}`,
      headers: { ...HEADERS, authorization: await authorize.header(signal) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
      allowPrivate,
      answerMax: COMMENTS_MAX,
    })
    if (answer.status === 401) authorize.forget()
    return answer
  }

  /** Whether a comment with this marker is there; an answer where that cannot be told. */
  const isThere = async (
    issue: number,
    message: Message,
    signal: AbortSignal,
  ): Promise<boolean | OutgoingAnswer> => {
    const since = new Date(message.at - APART_MS).toISOString()
    for (let page = 1; page <= PAGES; page++) {
      const path = `/repos/${repository}/issues/${issue}/comments?per_page=${PAGE}&page=${page}&since=${since}`
      const answer = await call('GET', path, signal)
      if (answer.status !== 200) return answer
      const comments = JSON.parse(answer.body) as readonly { readonly body?: string }[]
      // at its end, where no run's text comes to stand
      if (comments.some(({ body }) => body?.trimEnd().endsWith(markerOf(message)) === true))
        return true
      if (comments.length < PAGE) return false
    }
    return false
  }

  return {
    name,
    type,
    kinds,
    async send(message, signal) {
      const issue = config.issue === 'key' ? issueOf(message.key, repository) : config.issue
      if (issue === null)
        return { ok: false, why: `its run names no issue of ${repository} by its key`, never: true }
      if (message.again) {
        const there = await isThere(issue, message, signal)
        if (there === true) return { ok: true, note: `the comment on #${issue} was there` }
        if (there !== false) return sentOf(there, time)
      }
      const answer = await call('POST', `/repos/${repository}/issues/${issue}/comments`, signal, {
        body: commentOf(message),
      })
      return sentOf(answer, time)
    },
  }
}

const HEADERS = {
  accept: 'application/vnd.github+json',
  'content-type': 'application/json',
  'user-agent': 'leasehold',
  'x-github-api-version': '2022-11-28',
}

const markerOf = ({ id }: Message): string => `<!-- leasehold:${id} -->`

const commentOf = (message: Message): string => {
  const data = JSON.stringify(payloadOf(message), null, 2)
  // a fence longer than any in it, so that nothing of a run's text is read as a comment's
  const fence = '`'.repeat(Math.max(3, ...[...data.matchAll(/`+/g)].map(([run]) => run.length + 1)))
  const said = quoted(clipped(message.sentence))
  return `**${titleOf(message)}**\n\n${said}\n\n<details><summary>Details</summary>\n\n${fence}json\n${data}\n${fence}\n\n</details>\n\n${markerOf(message)}\n`
}

/** As text and not as markup: nobody is mentioned, nothing is linked, and no marker is made, by what a run says. */
const quoted = (text: string): string =>
  oneLine(text, 5_000)
    .replace(/[\\`*_{}[\]()#+!|<>~]/g, '\\$&')
    .replace(/@/g, '@\u200b')

/** The issue that a run's key names: `owner/name#12`. */
const issueOf = (key: string | null, repository: string): number | null => {
  const [, named, number] = /^([\w.-]+\/[\w.-]+)#(\d{1,9})$/.exec(key ?? '') ?? []
  return named?.toLowerCase() === repository.toLowerCase() && number !== undefined
    ? Number(number)
    : null
}

interface Authorization {
  header(signal: AbortSignal): Promise<string>
  /** The token was refused: another one is asked for next time. */
  forget(): void
}

/** A token lasts for an hour; a minute before its end it is exchanged. */
const EARLY_MS = 60_000

const authorization = (
  { auth, api, allowPrivate }: GithubSinkConfig,
  { outgoing, time }: Around,
): Authorization => {
  if ('token' in auth)
    return {
      header: () => Promise.resolve(`Bearer ${auth.token}`),
      forget: () => undefined,
    }
  let known: { readonly token: string; readonly until: number } | null = null
  return {
    async header(signal) {
      if (known === null || time.now() > known.until - EARLY_MS) {
        const now = Math.floor(time.now() / 1_000)
        // the forge's clock may be behind ours
        const claims = { iat: now - 60, exp: now + 540, iss: auth.app }
        const { status, body } = await outgoing({
          method: 'POST',
          url: `${api}/app/installations/${auth.installation}/access_tokens`,
          headers: {
            ...HEADERS,
            authorization: `Bearer ${signedClaims(claims, auth.privateKey)}`,
          },
          body: '{}',
          signal,
          allowPrivate,
        })
        if (status !== 201)
          throw new Fault(
            'peer_unreachable',
            `the app ${auth.app} was given no token for the installation ${auth.installation}: it answered ${status}: ${oneLine(body, 200)}`,
          )
        const { token, expires_at: until } = JSON.parse(body) as {
          token: string
          expires_at: string
        }
        known = { token, until: Date.parse(until) }
      }
      return `Bearer ${known.token}`
    },
    forget: () => (known = null),
  }
}
