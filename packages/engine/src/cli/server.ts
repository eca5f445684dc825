// The server that a command talks to, and the runs that it names.
import type { Client } from '../client/client.ts'
import { connect } from '../client/client.ts'
import { LeaseholdError } from '../kernel/errors.ts'
import type { Config, Sources } from './config.ts'
import { loadConfig } from './config.ts'

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

/** The id as given, or of the newest run for `latest`. */
export const runNamed = async (client: Client, given: string | undefined): Promise<string> => {
  if (given !== undefined && given !== 'latest') return given
  const { runs } = await client.list({ limit: '1' })
  const [newest] = runs
  if (!newest)
    throw new LeaseholdError(
      'not_found',
      'there is no run yet; `leasehold start <workflow>` makes one',
    )
  return newest.id
}
