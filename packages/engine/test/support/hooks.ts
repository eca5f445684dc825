// What sends deliveries to a server: GitHub's own payloads, signed by what GitHub's users verify them with.
import { Webhooks } from '@octokit/webhooks'
import all from '@octokit/webhooks-examples' with { type: 'json' }

export interface Example {
  readonly event: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** Real payloads of GitHub, each with its event; what a few members are for the test. */
export const examples = (): Example[] =>
  (all as unknown as readonly { name: string; examples: readonly Example['payload'][] }[]).flatMap(
    ({ name, examples: some }) => some.map((payload) => ({ event: name, payload })),
  )

export const example = (event: string, action?: string): Readonly<Record<string, unknown>> => {
  const found = examples().find(
    (each) => each.event === event && (action === undefined || each.payload['action'] === action),
  )
  if (!found) throw new Error(`there is no example of ${event}`)
  return found.payload
}

/** The headers of a delivery by GitHub. */
export const githubHeaders = async (
  secret: string,
  body: string,
  delivery: string,
  event: string,
): Promise<Record<string, string>> => ({
  'content-type': 'application/json',
  'user-agent': 'GitHub-Hookshot/044aadd',
  'x-github-delivery': delivery,
  'x-github-event': event,
  'x-hub-signature-256': await new Webhooks({ secret }).sign(body),
})
