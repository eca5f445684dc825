// Whether a column that is a list of texts as JSON has one of them, by functions that both databases have.

/** What stands between two texts of a list, where it is looked through. */
export const SEPARATOR = '\u0001'
const BACKSLASH = '\u0002'
const QUOTE = '\u0003'

/** A text as `hasItem` looks for it. */
export const item = (text: string): string =>
  `${SEPARATOR}${JSON.stringify(text).slice(1, -1).replaceAll('\\\\', BACKSLASH).replaceAll('\\"', QUOTE)}${SEPARATOR}`

/**
 * Whether a column that is a list of texts as JSON has one that is `wanted`, whole: what is escaped in it becomes characters
 * that no JSON text has, so that a quote is an end, and what stands between two texts one such character.
 */
export const hasItem = (column: string, wanted: string, separator: string): string => {
  const plain = `replace(replace(${column}, '\\\\', '${BACKSLASH}'), '\\"', '${QUOTE}')`
  const parted = `(${separator} || replace(substr(${plain}, 3, length(${plain}) - 4), '","', ${separator}) || ${separator})`
  return `(case when ${column} = '[]' then 0 when replace(${parted}, ${wanted}, '') <> ${parted} then 1 else 0 end = 1)`
}
