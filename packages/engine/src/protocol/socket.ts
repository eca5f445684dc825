// A connection over which texts pass both ways, each whole and in order: what executors over WebSocket speak through. What
// carries it is a port, so that a test or the simulator can carry it too.
export interface Socket {
  send(text: string): void
  /** Asks the other side for a sign of life. */
  ping(): void
  /** Bytes that were sent and have not left yet. */
  readonly buffered: number
  /** Ends it and says why; what was sent before arrives first. */
  close(code: number, reason: string): void
  /** Ends it here and now, without a word. */
  cut(): void
  /** Says who hears of it; called once, before anything arrives. */
  hear(hearing: Hearing): void
}

export interface Hearing {
  text(text: string): void
  /** Something that is not text has come. */
  binary(): void
  /** The other side has shown that it lives. */
  alive(): void
  /** It is over, whoever ended it; said once. */
  closed(code: number, reason: string): void
}

export const SOCKET_PATH = '/v1/executor/socket'

/** A larger message is not read, and its connection is closed with 1009. */
export const MESSAGE_MAX = 64 * 1024 ** 2

/** How often each end asks the other whether it is there. */
export const PULSE_MS = 5_000

/** Why a connection was closed, beside the codes that the WebSocket has for itself. */
export const closeCodes = {
  going_away: 1001,
  not_text: 1003,
  internal_error: 1011,
  incompatible_protocol: 4001,
  connection_superseded: 4002,
  session_ended: 4003,
  not_registered: 4004,
  does_not_read: 4005,
} as const

/** A close has room for 123 bytes of reason. */
export const closeReason = (text: string): string => {
  let short = text.slice(0, 123)
  while (Buffer.byteLength(short) > 123) short = short.slice(0, -1)
  return short
}
