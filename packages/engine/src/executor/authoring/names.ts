// Names that authors give to steps and waits, and the keys under which the journal keeps them.
import { LeaseholdError } from '../../kernel/errors.ts'
import { shown } from '../../kernel/json.ts'

export const escaped = (name: string): string => name.replace(/[%/:]/g, encodeURIComponent)

// control characters and lone surrogates: what one of the stores cannot keep in a name
const UNFIT =
  /[\u0000-\u001f\u007f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

export const mustKeep = (name: unknown, what: string): void => {
  if (typeof name !== 'string' || name === '' || name.length > 200 || UNFIT.test(name))
    throw new LeaseholdError(
      'invalid_request',
      `${what} is ${shown(name)}, which cannot be kept; expected 1 to 200 characters without control characters`,
    )
}
