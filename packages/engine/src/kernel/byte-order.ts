/**
 * Compares texts as both databases order them: by their bytes in UTF-8. JavaScript's own order puts characters beyond U+FFFF
 * before those from U+E000 on.
 */
export const byBytes = (a: string, b: string): number =>
  a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b))
