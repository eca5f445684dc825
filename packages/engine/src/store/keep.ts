// From Node 24.19 on, better-sqlite3 12 ends the process when one of its objects is collected as garbage: its destructor
// finds no environment to leave. What is made there is kept for good. Node 20 and 22 collect it as ever.
const COLLECTING_ABORTS = Number(process.versions.node.split('.')[0]) >= 24

const kept: unknown[] = []

/** The database or statement itself, which is never collected where that would end the process. */
export const keep = <T>(made: T): T => {
  if (COLLECTING_ABORTS) kept.push(made)
  return made
}
