// How what attempts append to streams is numbered: a later attempt's items come after an earlier one's, a repeat has the numbers of
// the first, and no number is beyond the 32 bits of its column.

/** Items that one attempt appends at most. */
export const ITEMS_MAX = 10_000

/** So many attempts number by themselves, each from a place of its own; a later one goes on from the last number. */
export const STRIDES = 2_000

const STRIDE = 1_000_000

/** The number before the first of this attempt. `items` is the run's last, as the claim has it, in an attempt beyond `STRIDES`. */
export const itemsBefore = (attempt: number, items?: number): number =>
  attempt <= STRIDES || items === undefined
    ? attempt * STRIDE
    : Math.max(items, (STRIDES + 1) * STRIDE)
