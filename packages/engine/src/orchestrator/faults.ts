// All faults of a value against its schema at once, each with its path.
import type * as z from 'zod'
import type { Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { cutText } from '../model/log.ts'

export interface PathFault {
  readonly path: string
  readonly message: string
}

/** Of a longer path the middle is left out: a body may be nested hundreds deep, and its names may be as long as it is. */
const PATH_MAX = 400

/** A JSON path such as `$.labels[0]`, with its middle left out where it is very long. */
export const pathText = (path: readonly PropertyKey[], root = '$'): string => {
  const text = path.reduce<string>(
    (before, part) =>
      typeof part === 'number'
        ? `${before}[${part}]`
        : /^[A-Za-z_$][\w$]*$/.test(String(part))
          ? `${before}.${String(part)}`
          : `${before}[${JSON.stringify(String(part))}]`,
    root,
  )
  return cutText(text, PATH_MAX)
}

const SHOWN = 50

export const faultsOf = (error: z.ZodError, root = '$'): PathFault[] =>
  error.issues.flatMap((issue): PathFault[] => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({
        path: pathText([...issue.path, key], root),
        message: 'is not known here',
      }))
    return [{ path: pathText(issue.path, root), message: issue.message }]
  })

/** The refusal that lists the faults; `where` says what of the request they are in. */
export const invalid = (faults: readonly PathFault[], where: string): Refusal => {
  const shown = faults.slice(0, SHOWN)
  return refuse(
    'invalid_request',
    `the ${where} has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}: ${shown
      .slice(0, 5)
      .map(({ path, message }) => `${path} ${message}`)
      .join('; ')}`,
    { faults: shown },
  )
}
