// What the whole numbers of both databases have room for: their columns `int` have 32 bits.
export const INT_MAX = 2_147_483_647

/** The whole number that a text from outside says, from 0 to `most`; 0 where it says none. */
export const placeIn = (text: string | null | undefined, most: number): number => {
  const place = /^\d{1,16}$/.test(text ?? '') ? Number(text) : 0
  return place <= most ? place : 0
}
