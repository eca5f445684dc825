// Declaring a command: what of its flags is a setting, and that its code is loaded when it is called.
import type { Command } from 'commander'
import type { Call, Run } from './call.ts'
import type { Output } from './output.ts'

/** What the program is called in. */
export interface Around {
  readonly out: Output
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly version: string
  /** Whether a program reads what is said: whoever made this one tells it of mistakes in the arguments. */
  readonly json: boolean
  /** Hears the exit code of the command that ran. */
  readonly ended: (code: number) => void
}

/** Flags that are settings, by the names that they have in the configuration. */
export const SETTINGS = [
  'config', 'file', 'database', 'databases', 'url', 'via', 'host', 'port', 'logLevel', 'actor', 'token', 'slots', 'queues', 'labels', 'build', 'drainMs', 'killLimitMs', 'jobTemplate', 'jobStartByMs', 'cluster', 'clusterNamespace',
] // prettier-ignore

/** Makes a command of `program` whose code is `load`ed when it is called. */
export const declaring =
  (program: Command, { out, env, cwd, ended }: Around) =>
  <O extends object>(
    usage: string,
    description: string,
    load: () => Promise<{ readonly run: Run<O> }>,
  ): Command => {
    const made = program
      .command(usage)
      .description(description)
      .configureHelp({ sortOptions: true })
    made.option('--config <path>', 'configuration file')
    made.action(async () => {
      const options = made.opts<Record<string, unknown>>()
      const flags = Object.fromEntries(
        SETTINGS.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
      )
      const { run } = await load()
      if (Object.keys(env).some((name) => name.startsWith('LEASEHOLD_'))) {
        const { unknownVariables } = await import('./config/unknown-variables.ts')
        for (const sentence of unknownVariables({ env })) out.note(sentence)
      }
      const args = made.processedArgs
        .flat()
        .map((arg: unknown) => (typeof arg === 'string' ? arg : ''))
      ended(
        await run({
          args,
          options: options as Call<O>['options'],
          out,
          sources: { flags, env, cwd },
        }),
      )
    })
    return made
  }

/** One that talks to a server. */
export const ofServer = (made: Command): Command =>
  made
    .option('--url <url>', 'address of the server')
    .option('--token <token>', 'token to show it (better: LEASEHOLD_TOKEN or LEASEHOLD_TOKEN_FILE)')

/** One that only reads from it. */
export const reading = (made: Command): Command => ofServer(made).option('--json', 'print JSON')

/** One that changes something there. */
export const acting = (made: Command): Command =>
  reading(made).option('--actor <name>', 'who acts (default: this user)')
