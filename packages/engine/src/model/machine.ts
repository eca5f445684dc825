// What a move table is: the states of a noun and every way from one to another, as data. The table feeds the writers,
// the exhaustive tests and docs/states.md; the CHECK lists of the schema say the same and are tested against it.
import { Defect } from '../kernel/errors.ts'

interface Move<S extends string> {
  readonly from: readonly S[]
  /** `same`: the state stays what it is. */
  readonly to: readonly S[] | 'same'
  /** One sentence: when this happens. */
  readonly why: string
}

export interface Machine<S extends string, M extends string> {
  readonly name: string
  readonly states: readonly S[]
  readonly terminal: readonly S[]
  readonly moves: Readonly<Record<M, Move<S>>>
}

export const machine = <const S extends string, const M extends string>(
  table: Machine<S, M>,
): Machine<S, M> => table

export const allows = <S extends string, M extends string>(
  table: Machine<S, M>,
  move: M,
  from: S,
  to: S,
): boolean => {
  const { from: sources, to: targets } = table.moves[move]
  return sources.includes(from) && (targets === 'same' ? to === from : targets.includes(to))
}

/** Throws a defect unless the table has this move: callers refuse first, so that a miss is our own mistake. */
export const mustAllow = <S extends string, M extends string>(
  table: Machine<S, M>,
  move: M,
  from: S,
  to: S,
): void => {
  if (!allows(table, move, from, to))
    throw new Defect(`${table.name}: ${move} does not lead from ${from} to ${to}`)
}
