// Renewals of an executor that has no server between it and its database.
import type { ExecutorOptions } from '../executor/executor.ts'
import { programs } from '../executor/programs.ts'
import { threadRenewals } from '../executor/session/renewal-thread.ts'
import type { Opened } from '../orchestrator/open.ts'

/**
 * Renewals for an executor on `opened.embedded`, from a thread of its own with connections of its own to the same database:
 * the option `renewals` of `makeExecutor`. A body that keeps the main loop busy for up to `stallLimitMs` (default 60 s) then
 * does not cost its runs.
 */
export const databaseRenewals = (
  opened: Opened,
  {
    url,
    schema,
    stallLimitMs,
  }: { readonly url: string; readonly schema?: string; readonly stallLimitMs?: number },
): NonNullable<ExecutorOptions['renewals']> =>
  threadRenewals({
    program: programs.renewalsPostgres,
    reach: { url, ...(schema === undefined ? {} : { schema }) },
    ...(stallLimitMs === undefined ? {} : { stallLimitMs }),
    answered: (request, answer) => opened.embedded.renewed(request, answer),
  })
