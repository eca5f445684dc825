// What an author's program hands over, looked at before anything is done with it: programs without types can hand over anything.
import { LeaseholdError } from '../../kernel/errors.ts'
import { shown } from '../../kernel/json.ts'

/** Throws `code` where `given` cannot be called. */
export const mustBeFunction = (
  given: unknown,
  what: string,
  code: 'invalid_config' | 'invalid_request' = 'invalid_config',
): void => {
  if (typeof given !== 'function')
    throw new LeaseholdError(code, `${what} is ${shown(given)}; expected a function`)
}

/** Throws `invalid_request` where one of the branches is no function, or there is nothing that has branches. */
export const mustBeBranches = (given: unknown, what: string): void => {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new LeaseholdError(
      'invalid_request',
      `the branches of ${what} are ${shown(given)}; expected an object with a function for each name`,
    )
  for (const [name, body] of Object.entries(given))
    mustBeFunction(body, `the branch ${name} of ${what}`, 'invalid_request')
}

/** Throws `invalid_request` where a step is neither a name nor a task. */
export const mustBeTask = (given: unknown): void => {
  const { kind } = (given ?? {}) as { kind?: unknown }
  if (kind !== 'task')
    throw new LeaseholdError(
      'invalid_request',
      `ctx.step was given ${shown(given)}; expected a name and a body, or what \`task(…)\` returned`,
    )
}

/** Throws `invalid_request` where this is no workflow that can be started as a child. */
export const mustBeWorkflow = (given: unknown, what: string): void => {
  const { name, definition } = (given ?? {}) as { name?: unknown; definition?: unknown }
  if (typeof name !== 'string' || typeof definition !== 'object')
    throw new LeaseholdError(
      'invalid_request',
      `${what} was given ${shown(given)}; expected what \`workflow(…)\` returned`,
    )
}
