// The writes of one message, each checked and answered on its own: a bad one, or one that could not be done, harms no other.
import { codes } from '../kernel/codes.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import type { ExecutorPort, WriteAnswer } from '../model/work.ts'
import { attemptWrite } from '../protocol/executor-shapes.ts'
import { faultsOf, invalid } from './faults.ts'

export const writeEach = (port: ExecutorPort, session: string, writes: readonly unknown[]) =>
  Promise.all(
    writes.map(async (each, at) => {
      const read = attemptWrite.safeParse(each)
      if (!read.success) return invalid(faultsOf(read.error, `$.writes[${at}]`), 'write')
      return port.write(session, read.data).then(shown, itemProblemOf)
    }),
  )

const shown = (answer: WriteAnswer) => ({ ...answer })

/** A fault of one write is answered beside the answers of the others. */
const itemProblemOf = (error: unknown) => {
  if (!(error instanceof LeaseholdError)) throw error
  return {
    ok: false as const,
    code: error.code,
    message: error.message,
    detail: error.detail,
    fault: codes[error.code].kind === 'fault',
  }
}
