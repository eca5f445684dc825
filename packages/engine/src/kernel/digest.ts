// Hashes: the keyed hash by which two inputs are compared, and the checksum of a migration.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/** HMAC-SHA-256 of `text` under the store's own key, in base64url: each run keeps one. */
export const keyedHash = (key: string, text: string): string =>
  createHmac('sha256', key).update(text, 'utf8').digest('base64url')

export const checksum = (text: string): string =>
  createHash('sha256').update(text, 'utf8').digest('hex')

/** The bytes of the same. */
export const digest = (text: string): Uint8Array =>
  createHash('sha256').update(text, 'utf8').digest()

/** Whether two texts are equal, in a time that does not tell where they differ. */
export const sameText = (a: string, b: string): boolean =>
  timingSafeEqual(Buffer.from(checksum(a)), Buffer.from(checksum(b)))

/** HMAC-SHA-256 of bytes as they came. */
export const signatureOf = (
  key: Uint8Array,
  ...parts: readonly (Uint8Array | string)[]
): Uint8Array => {
  const hmac = createHmac('sha256', key)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** Whether bytes are equal, in a time that does not tell where they differ; only their lengths may be told. */
export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean =>
  a.byteLength === b.byteLength && timingSafeEqual(a, b)

/** SHA-256 of bytes, in hexadecimal. */
export const digestOf = (bytes: Uint8Array): string =>
  createHash('sha256').update(bytes).digest('hex')
