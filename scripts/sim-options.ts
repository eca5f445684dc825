// What the simulator is asked for on its command line: every mistake is told in a sentence, before a world is played.
import { parseArgs } from 'node:util'

export interface SimOptions {
  readonly faults: number | undefined
  readonly seed: number
  readonly world: number | undefined
  /** A plan as JSON, as it came. */
  readonly plan: object | undefined
  readonly planted: string | undefined
  /** Pairs of strikes for each scenario beside the single ones. */
  readonly crashPoints: number | undefined
  readonly processes: number
  readonly shrink: boolean
  readonly quiet: boolean
  readonly record: boolean
}

/** The options, or the sentences that say what is wrong with them. */
export const simOptions = (
  args: readonly string[],
  processes: number,
  bugs: readonly string[],
): { readonly options: SimOptions } | { readonly mistakes: readonly string[] } => {
  const mistakes: string[] = []
  const given = valuesOf(args)
  if (typeof given === 'string') return { mistakes: [given] }
  const whole = (
    name: 'faults' | 'seed' | 'world' | 'processes' | 'crash-points',
    least: number,
  ) => {
    const text = given[name]
    if (text === undefined) return undefined
    const number = Number(text)
    if (text.trim() !== '' && Number.isSafeInteger(number) && number >= least) return number
    mistakes.push(
      `--${name} is ${JSON.stringify(text)}; expected a whole number of ${least} or more`,
    )
    return undefined
  }
  const plan = (): object | undefined => {
    if (given.plan === undefined) return undefined
    try {
      const read = JSON.parse(given.plan) as unknown
      if (typeof read === 'object' && read !== null) return read
    } catch {
      // said below
    }
    mistakes.push(
      `--plan is ${JSON.stringify(given.plan.slice(0, 80))}; expected the JSON that --shrink printed`,
    )
    return undefined
  }
  const { planted } = given
  for (const name of planted === undefined || planted === 'all' ? [] : planted.split(','))
    if (!bugs.includes(name))
      mistakes.push(`no bug is named ${name}; known: all, ${bugs.join(', ')}`)
  const options: SimOptions = {
    faults: whole('faults', 1),
    seed: whole('seed', 0) ?? 1,
    world: whole('world', 0),
    plan: plan(),
    planted,
    crashPoints: whole('crash-points', 0),
    processes: whole('processes', 1) ?? processes,
    shrink: given.shrink ?? false,
    quiet: given.quiet ?? false,
    record: given.record ?? false,
  }
  return mistakes.length > 0 ? { mistakes } : { options }
}

const valuesOf = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        faults: { type: 'string' },
        seed: { type: 'string' },
        world: { type: 'string' },
        plan: { type: 'string' },
        planted: { type: 'string' },
        'crash-points': { type: 'string' },
        processes: { type: 'string' },
        shrink: { type: 'boolean' },
        quiet: { type: 'boolean' },
        record: { type: 'boolean' },
      },
    }).values
  } catch (error) {
    // the parser says what is wrong and then what to do instead, in sentences
    return (error as Error).message.split('\n')[0] ?? 'the options cannot be read'
  }
}
