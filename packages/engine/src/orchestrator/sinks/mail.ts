// A sink that sends mail to one address by SMTP.
import type { Sink } from '../../model/delivery.ts'
import type { MailSinkConfig } from '../../model/sinks.ts'
import { clipped, oneLine, payloadOf, titleOf } from './text.ts'

export const mailSink = async (
  { name, type, kinds, url, password, from, to }: MailSinkConfig,
  timeoutMs: number,
): Promise<Sink> => {
  // loaded only where mail is sent
  const { createTransport } = await import('nodemailer')
  const at = new URL(url)
  const secure = at.protocol === 'smtps:'
  const host = at.hostname.replace(/^\[|\]$/g, '')
  const user = decodeURIComponent(at.username)
  return {
    name,
    type,
    kinds,
    async send(message, signal) {
      const transport = createTransport({
        host,
        port: at.port === '' ? (secure ? 465 : 587) : Number(at.port),
        secure,
        ...(user === '' ? {} : { auth: { user, pass: password ?? '' } }),
        connectionTimeout: timeoutMs,
        greetingTimeout: timeoutMs,
        socketTimeout: timeoutMs,
        dnsTimeout: timeoutMs,
        disableFileAccess: true,
        disableUrlAccess: true,
      })
      const stop = (): void => transport.close()
      signal.addEventListener('abort', stop, { once: true })
      try {
        const info = await transport.sendMail({
          from,
          to,
          subject: oneLine(`${titleOf(message)}: ${message.workflow ?? message.run}`, 150),
          text: `${clipped(message.sentence)}\n\n${JSON.stringify(payloadOf(message), null, 2)}\n`,
          // the same each time: a mailbox shows a repeat once
          messageId: `<${message.id}@leasehold>`,
          headers: { 'X-Leasehold-Notice': message.kind, 'Auto-Submitted': 'auto-generated' },
          date: new Date(message.at),
        })
        return { ok: true, note: oneLine(info.response, 200) }
      } finally {
        signal.removeEventListener('abort', stop)
        transport.close()
      }
    },
  }
}
