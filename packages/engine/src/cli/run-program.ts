// One call of the program, from its arguments to its exit code.
import { CommanderError } from 'commander'
import { exit, exitCodeOf, tell, tellJson, UsageError } from './exit.ts'
import type { Around } from './declaring.ts'
import { makeProgram } from './program.ts'

/**
 * Runs the command that `args` name, and answers the exit code; what went wrong is told on `around.out`, to a program where
 * `--json` is among them.
 */
export const runProgram = async (
  args: readonly string[],
  around: Omit<Around, 'ended' | 'json'>,
): Promise<number> => {
  let code: number = exit.ok
  const json = (args.includes('--') ? args.slice(0, args.indexOf('--')) : args).includes('--json')
  try {
    const program = makeProgram({ ...around, json, ended: (ended) => (code = ended) })
    await program.parseAsync(args, { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exit.ok
      if (json) tellJson(new UsageError(error.message.replace(/^error: /, '')), around.out)
      return exit.usage
    }
    if (json) tellJson(error, around.out)
    else tell(error, around.out)
    return exitCodeOf(error)
  }
}
