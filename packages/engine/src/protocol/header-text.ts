// Names in headers, which carry Latin-1 alone. A plain name stands as it is; any other is written as RFC 8187 has it,
// `UTF-8''` and its percent-encoded UTF-8, so that whoever may be named may also act.

const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/
const MARK = /^utf-8''/i

/** `text` as the value of a header. */
export const headerText = (text: string): string =>
  PLAIN.test(text) && !MARK.test(text) ? text : `UTF-8''${encodeURIComponent(text)}`

/**
 * What a header's value says; null where it is marked as encoded and is not. A value that is not marked is read as UTF-8
 * where its bytes are that, since that is what a shell sends, else as the Latin-1 that it came as.
 */
export const textOfHeader = (value: string): string | null => {
  if (MARK.test(value))
    try {
      return decodeURIComponent(value.replace(MARK, ''))
    } catch {
      return null
    }
  if (/^[\0-\x7f]*$/.test(value)) return value
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(
      Uint8Array.from(value, (each) => each.charCodeAt(0)),
    )
  } catch {
    return value
  }
}
