// What the bot asks of the forge, as GitHub's REST API has it. A comment carries the key of the step that wrote it: a step that
// is done again, since nobody heard of its first time, finds its comment and writes none.
const API = process.env['FORGE_API'] ?? 'https://api.github.com'
const TOKEN = process.env['FORGE_TOKEN'] ?? ''

export interface Issue {
  readonly repository: string
  readonly number: number
}

/** What tells a step's own comment from all others. */
const markerOf = (key: string): string => `<!-- ${key} -->`

const call = async (
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  signal: AbortSignal,
  body?: object,
): Promise<unknown> => {
  const response = await fetch(`${API}${path}`, {
    method,
    signal,
    headers: {
      accept: 'application/vnd.github+json',
      authorization: `Bearer ${TOKEN}`,
      'x-github-api-version': '2022-11-28',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  // the engine tries a step again that throws
  if (!response.ok) throw new Error(`${method} ${path}: the forge answered ${response.status}`)
  return response.json()
}

/** Step of a workflow: comments once, however often it is tried. Gives the comment's address. */
export const comment = async (
  { repository, number }: Issue,
  text: string,
  { idempotencyKey, signal }: { readonly idempotencyKey: string; readonly signal: AbortSignal },
): Promise<string> => {
  const path = `/repos/${repository}/issues/${number}/comments`
  const marker = markerOf(idempotencyKey)
  const there = (await call('GET', `${path}?per_page=100`, signal)) as {
    body: string
    html_url: string
  }[]
  const mine = there.find(({ body }) => body.endsWith(marker))
  const made =
    mine ??
    ((await call('POST', path, signal, { body: `${text}\n\n${marker}` })) as { html_url: string })
  return made.html_url
}

/** Sets the labels of an issue: the same once or twice. */
export const label = async (
  { repository, number }: Issue,
  labels: readonly string[],
  signal: AbortSignal,
): Promise<void> => {
  await call('PUT', `/repos/${repository}/issues/${number}/labels`, signal, { labels })
}
