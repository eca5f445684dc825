// The server that a command talks to, and the runs that it names.
import type { Client, RunSummary } from '../client/client.ts'
import { connect } from '../client/connect.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Config } from './config/config.ts'
import type { Sources } from './config/sources.ts'
import { loadConfig } from './config/load-config.ts'

export interface Server {
  readonly client: Client
  readonly config: Config
}

/** `patient`: how long a call is repeated while no server answers; a person rather hears at once. */
export const reach = (sources: Sources, { patientMs = 0 }: { patientMs?: number } = {}): Server => {
  const { config } = loadConfig(sources)
  const token = config.token ?? config.operatorToken ?? config.viewerToken
  const client = connect({
    url: config.url,
    actor: config.actor,
    retryForMs: patientMs,
    ...(token === null ? {} : { token }),
  })
  return { client, config }
}

/** The id as given; for `latest` that of the newest run that no run has started. */
export const runNamed = async (client: Client, given: string | undefined): Promise<string> => {
  if (given !== undefined && given !== 'latest') return given
  let newest: RunSummary | undefined
  // where few fit a page may be empty, and have a next one
  for (let cursor: string | null | undefined; newest === undefined && cursor !== null;) {
    const page: Awaited<ReturnType<Client['list']>> = await client.list({
      limit: '1',
      roots: 'true',
      ...(cursor === undefined ? {} : { cursor }),
    })
    newest = page.runs[0]
    cursor = page.next
  }
  if (!newest)
    throw new LeaseholdError(
      'not_found',
      'there is no run yet; `leasehold start <workflow>` makes one',
    )
  return newest.id
}
