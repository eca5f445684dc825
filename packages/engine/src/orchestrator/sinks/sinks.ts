// The sinks of a server, made from its configuration.
import type { Outgoing } from '../../kernel/outgoing.ts'
import type { Ports } from '../../kernel/ports.ts'
import type { Sink } from '../../model/delivery.ts'
import type { SinkConfig } from '../../model/sinks.ts'
import { githubSink } from './github.ts'
import { logSink } from './log.ts'
import { mailSink } from './mail.ts'
import { webhookSink } from './webhook.ts'

export const makeSinks = (
  configs: readonly SinkConfig[],
  { time, log }: Pick<Ports, 'time' | 'log'>,
  outgoing: Outgoing,
  timeoutMs: number,
): Promise<Sink[]> =>
  Promise.all(
    configs.map(async (config): Promise<Sink> => {
      switch (config.type) {
        case 'log':
          return logSink(config, log)
        case 'webhook':
          return webhookSink(config, { outgoing, time })
        case 'smtp':
          return mailSink(config, timeoutMs)
        case 'github':
          return githubSink(config, { outgoing, time })
      }
    }),
  )
