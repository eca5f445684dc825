// The body of a request, read up to a limit and as JSON: too much, or what is not JSON, is refused before it is looked at.
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'

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

/** The bytes of a body, read up to a limit. */
export const readBytes = async (
  request: Request,
  limit: number,
): Promise<{ readonly ok: true; readonly bytes: Uint8Array } | Refusal> => {
  const declared = request.headers.get('content-length')
  if (declared !== null && Number(declared) > limit) return tooLarge(Number(declared), limit)
  const bytes = await readParts(request, limit).catch(() => null)
  if (bytes === null) return notWhole()
  return bytes instanceof Uint8Array ? { ok: true, bytes } : tooLarge(bytes.bytes, limit)
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
): Promise<Uint8Array | { bytes: number }> => {
  const parts: Uint8Array[] = []
  let bytes = 0
  if (request.body !== null) {
    const reader = (request.body as ReadableStream<Uint8Array>).getReader()
    for (;;) {
      const part = await reader.read()
      if (part.done) break
      bytes += part.value.byteLength
      if (bytes > limit) {
        await reader.cancel().catch(() => undefined)
        return { bytes }
      }
      parts.push(part.value)
    }
  }
  return Buffer.concat(parts)
}
