// Waits until a run has ended and tells how: its output on stdout, all else beside it.
import type { Client } from '../client/client.ts'
import { exit } from './exit.ts'
import type { Output } from './output.ts'

interface Waiting {
  readonly client: Client
  readonly run: string
  readonly out: Output
  readonly json: boolean
  readonly waitMs?: number
}

export const waitForEnd = async ({ client, run, out, json, waitMs }: Waiting): Promise<number> => {
  const result = await client.result(run, waitMs === undefined ? {} : { timeoutMs: waitMs })
  if (json) out.json(result)
  if (!result.ended) {
    out.error(`${result.run} is ${result.status} still; \`leasehold show ${result.run}\` says why`)
    return exit.timedOut
  }
  if (result.status === 'succeeded') {
    if (!json && result.output !== null) out.json(result.output)
    return exit.ok
  }
  out.error(
    `${result.run} ${result.status}${result.reason === null ? '' : ` (${result.reason})`}: ${result.note ?? 'no note'}`,
  )
  return exit.failed
}
