// A sink that posts to an address, signed as Standard Webhooks says: HMAC-SHA-256 of `id.timestamp.body` under each secret.
import { createHmac } from 'node:crypto'
import type { Outgoing, OutgoingAnswer } from '../../kernel/outgoing.ts'
import type { Time } from '../../kernel/time.ts'
import type { Sent, Sink } from '../../model/delivery.ts'
import type { WebhookSinkConfig } from '../../model/sinks.ts'
import { oneLine, payloadOf } from './text.ts'

export const webhookSink = (
  { name, type, kinds, url, secrets, allowPrivate }: WebhookSinkConfig,
  { outgoing, time }: { readonly outgoing: Outgoing; readonly time: Time },
): Sink => ({
  name,
  type,
  kinds,
  async send(message, signal) {
    const body = JSON.stringify({
      type: message.kind,
      timestamp: new Date(message.at).toISOString(),
      data: payloadOf(message),
    })
    const timestamp = String(Math.floor(time.now() / 1_000))
    const answer = await outgoing({
      method: 'POST',
      url,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'leasehold',
        'webhook-id': message.id,
        'webhook-timestamp': timestamp,
        'webhook-signature': secrets
          .map((secret) => `v1,${signature(secret, `${message.id}.${timestamp}.${body}`)}`)
          .join(' '),
      },
      body,
      signal,
      allowPrivate,
    })
    return sentOf(answer, time)
  },
})

/** `whsec_` is followed by the key in base64; any other secret is the key itself. */
const signature = (secret: string, text: string): string =>
  createHmac('sha256', keyOf(secret)).update(text, 'utf8').digest('base64')

const keyOf = (secret: string): Buffer =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret, 'utf8')

/** What an answer means for a delivery. A redirect is none: it would lead where nobody has configured. */
export const sentOf = ({ status, headers, body }: OutgoingAnswer, time: Time): Sent => {
  if (status >= 200 && status < 300) return { ok: true, note: `it answered ${status}` }
  const said = oneLine(body, 200)
  const why =
    status >= 300 && status < 400
      ? `it answered ${status}; redirects are not followed`
      : `it answered ${status}${said === '' ? '' : `: ${said}`}`
  const afterMs = retryAfter(headers['retry-after'], time)
  return {
    ok: false,
    why,
    // Standard Webhooks: the receiver wants no more of it
    ...(status === 410 ? { forGood: true } : {}),
    ...(afterMs === null ? {} : { afterMs }),
  }
}

const retryAfter = (header: string | string[] | undefined, time: Time): number | null => {
  if (typeof header !== 'string') return null
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1_000
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - time.now())
}
