// The body of a request, read up to a limit and as JSON: too much, or what is not JSON, is refused before it is looked at.
import type { Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'

export interface ReadBody {
  readonly ok: true
  readonly text: string
  /** `{}` where the request has no body. */
  readonly value: unknown
}

export const readBody = async (request: Request, limit: number): Promise<ReadBody | Refusal> => {
  const declared = request.headers.get('content-length')
  if (declared !== null && Number(declared) > limit) return tooLarge(Number(declared), limit)
  // the platform reads no more than was declared
  const text = await (declared === null ? readText(request, limit) : request.text()).catch(
    () => null,
  )
  if (text === null) return notWhole()
  if (typeof text !== 'string') return tooLarge(text.bytes, limit)
  if (text.trim() === '') return { ok: true, text, value: {} }
  try {
    return { ok: true, text, value: JSON.parse(text) as unknown }
  } catch (error) {
    return refuse('invalid_request', `the body is not JSON: ${(error as Error).message}`, {
      faults: [{ path: '$', message: 'is not JSON' }],
    })
  }
}

/** How many bytes may be held at once of bodies whose senders nobody knows yet, and how many are. */
export interface Share {
  readonly most: number
  held: number
}

/**
 * The bytes of a body, read up to a limit and within a share of memory with all others that are read at the time: of a sender
 * who is known by the body's signature alone, nothing is known until it is there. Those who send slowly hold what they sent.
 */
export const readBytes = async (
  request: Request,
  limit: number,
  share: Share,
): Promise<{ readonly ok: true; readonly bytes: Uint8Array } | Refusal> => {
  const declared = request.headers.get('content-length')
  if (declared !== null && Number(declared) > limit) return tooLarge(Number(declared), limit)
  const bytes = await readParts(request, limit, share).catch(() => null)
  if (bytes === null) return notWhole()
  if (bytes instanceof Uint8Array) return { ok: true, bytes }
  if (bytes.bytes > limit) return tooLarge(bytes.bytes, limit)
  return refuse(
    'server_busy',
    `deliveries that are being received hold ${share.most} bytes, as much as they may; send it again in a moment`,
    { limit: share.most },
  )
}

const tooLarge = (bytes: number, limit: number): Refusal =>
  refuse(
    'payload_too_large',
    `the body has ${bytes} bytes or more; the limit of this route is ${limit}. Store the data elsewhere and pass a reference`,
    { bytes, limit },
  )

const notWhole = (): Refusal =>
  refuse('invalid_request', 'the body did not arrive whole; send the request again', {
    faults: [{ path: '$', message: 'did not arrive whole' }],
  })

/** The text of a body whose length nobody declared, or how far it was read when it was too long. */
const readText = async (request: Request, limit: number): Promise<string | { bytes: number }> => {
  const parts = await readParts(request, limit)
  return parts instanceof Uint8Array ? Buffer.from(parts).toString('utf8') : parts
}

const readParts = async (
  request: Request,
  limit: number,
  share: Share = { most: Number.POSITIVE_INFINITY, held: 0 },
): Promise<Uint8Array | { bytes: number }> => {
  const parts: Uint8Array[] = []
  let bytes = 0
  if (request.body === null) return Buffer.concat(parts)
  const reader = (request.body as ReadableStream<Uint8Array>).getReader()
  try {
    for (;;) {
      const part = await reader.read()
      if (part.done) return Buffer.concat(parts)
      bytes += part.value.byteLength
      share.held += part.value.byteLength
      if (bytes > limit || share.held > share.most) {
        await reader.cancel().catch(() => undefined)
        return { bytes }
      }
      parts.push(part.value)
    }
  } finally {
    share.held -= bytes
  }
}
