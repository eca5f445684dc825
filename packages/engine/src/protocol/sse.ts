// Server-sent events as text: written by the server, read by the client. One message is an event, an id and JSON data.
export interface Message {
  readonly event: string
  /** Where a client resumes; null leaves the position as it was. */
  readonly id: string | null
  readonly data: unknown
}

export const STILL_HERE = ': here\n\n'

/** JSON has no line breaks of its own, so a message's data is one line. */
export const messageText = ({ event, id, data }: Message): string =>
  `event: ${event}\n${id === null ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`

/** Collects text as it arrives and answers the messages that are complete; comments are dropped. */
export const messageReader = (): ((text: string) => Message[]) => {
  let rest = ''
  return (text) => {
    const parts = (rest + text).replace(/\r\n/g, '\n').split('\n\n')
    rest = parts.pop() ?? ''
    return parts.flatMap((part) => {
      const message = readMessage(part)
      return message === undefined ? [] : [message]
    })
  }
}

const readMessage = (part: string): Message | undefined => {
  let event = 'message'
  let id: string | null = null
  const data: string[] = []
  for (const line of part.split('\n')) {
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? []
    if (field === 'event') event = value
    else if (field === 'id') id = value
    else if (field === 'data') data.push(value)
  }
  return data.length === 0 ? undefined : { event, id, data: JSON.parse(data.join('\n')) as unknown }
}
