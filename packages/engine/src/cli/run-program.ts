// One call of the program, from its arguments to its exit code.
import { CommanderError } from 'commander'
import { exit, exitCodeOf, tell } from './exit.ts'
import type { Around } from './program.ts'
import { makeProgram } from './program.ts'

/** Runs the command that `args` name, and answers the exit code; what went wrong is told on `around.out`. */
export const runProgram = async (
  args: readonly string[],
  around: Omit<Around, 'ended'>,
): Promise<number> => {
  let code: number = exit.ok
  try {
    const program = makeProgram({ ...around, ended: (ended) => (code = ended) })
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exit.ok : exit.usage
    tell(error, around.out)
    return exitCodeOf(error)
  }
}
