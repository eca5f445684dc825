// A sink that writes to the server's log, for those who gather logs anyway.
import type { Log } from '../../kernel/log.ts'
import type { Sink } from '../../model/delivery.ts'
import type { LogSinkConfig } from '../../model/sinks.ts'
import { payloadOf } from './text.ts'

export const logSink = ({ name, type, kinds }: LogSinkConfig, log: Log): Sink => ({
  name,
  type,
  kinds,
  send(message) {
    log.warn('notice', { sink: name, ...payloadOf(message) })
    return Promise.resolve({ ok: true, note: 'logged' })
  },
})
