// What the whole numbers of both databases have room for: their columns `int` have 32 bits.
export const INT_MAX = 2_147_483_647
