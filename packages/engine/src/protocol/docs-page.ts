// The OpenAPI document as one page to read: no script, nothing fetched, so that it works wherever the server does.
type Json = Record<string, unknown>

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly 'x-role': string
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly description?: string
    readonly schema: Json
  }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Json }> }
  readonly responses: Record<
    string,
    {
      readonly description: string
      readonly content?: Record<string, { readonly schema: Json }>
    }
  >
}

const escaped = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

/** A member that is a text, or nothing. */
const textIn = (schema: Json, name: string): string => {
  const found = schema[name]
  return typeof found === 'string' ? found : ''
}

/** Text with `code` in backticks. */
const prose = (text: string): string => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>')

const typeOf = (schema: Json): string => {
  const ref = schema['$ref']
  if (typeof ref === 'string') {
    const name = ref.split('/').at(-1) ?? ''
    return `<a href="#schema-${escaped(name)}">${escaped(name)}</a>`
  }
  if (Array.isArray(schema['enum']))
    return schema['enum'].map((each) => `<code>${escaped(String(each))}</code>`).join(' | ')
  if (schema['const'] !== undefined)
    return `<code>${escaped(JSON.stringify(schema['const']))}</code>`
  const either = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(either)) return either.map((each) => typeOf(each as Json)).join(' | ')
  if (schema['type'] === 'array') return `${typeOf((schema['items'] ?? {}) as Json)}[]`
  return escaped(textIn(schema, 'type') || 'any JSON value')
}

const members = (schema: Json): string => {
  const properties = schema['properties'] as Record<string, Json> | undefined
  if (!properties) return `<p>${typeOf(schema)}</p>`
  const required = (schema['required'] ?? []) as readonly string[]
  const row = ([name, part]: [string, Json]): string =>
    `<tr><td><code>${escaped(name)}</code>${required.includes(name) ? '' : ' <small>optional</small>'}</td><td>${typeOf(part)}</td><td>${prose(textIn(part, 'description'))}</td></tr>`
  return `<table><thead><tr><th>member</th><th>type</th><th>meaning</th></tr></thead><tbody>${Object.entries(properties).map(row).join('')}</tbody></table>`
}

const section = (path: string, method: string, operation: Operation): string => {
  const parameters = operation.parameters
    .map(
      (each) =>
        `<tr><td><code>${escaped(each.name)}</code>${each.required ? '' : ' <small>optional</small>'}</td><td>${escaped(each.in)}</td><td>${typeOf(each.schema)}</td><td>${prose(each.description ?? '')}</td></tr>`,
    )
    .join('')
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema
  const answers = Object.entries(operation.responses)
    .map(([status, { description, content }]) => {
      const schema = Object.values(content ?? {})[0]?.schema
      return `<tr><td>${escaped(status)}</td><td>${prose(description)}</td><td>${schema ? typeOf(schema) : ''}</td></tr>`
    })
    .join('')
  const answer = Object.values(operation.responses['200']?.content ?? {})[0]?.schema
  return `<details id="${escaped(operation.operationId)}"><summary><b>${method.toUpperCase()}</b> <code>${escaped(path)}</code> — ${prose(operation.summary)} <small>${escaped(operation['x-role'])}</small></summary>
${parameters === '' ? '' : `<h4>Parameters</h4><table><thead><tr><th>name</th><th>in</th><th>type</th><th>meaning</th></tr></thead><tbody>${parameters}</tbody></table>`}
${body ? `<h4>Body</h4>${members(body)}` : ''}
${answer?.['properties'] ? `<h4>Answer</h4>${members(answer)}` : ''}
<h4>Answers</h4><table><thead><tr><th>status</th><th>meaning</th><th>type</th></tr></thead><tbody>${answers}</tbody></table></details>`
}

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:60rem;margin:2rem auto;padding:0 1rem}
details{border:1px solid #8886;border-radius:6px;margin:.5rem 0;padding:.5rem .75rem}summary{cursor:pointer}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.25rem .5rem;border-bottom:1px solid #8884}small{opacity:.8}code{font-family:ui-monospace,monospace}`

/** The page for an OpenAPI document of ours. */
export const docsPage = (document: Json): string => {
  const info = document['info'] as { title: string; version: string; description: string }
  const paths = document['paths'] as Record<string, Record<string, Operation>>
  const schemas = (document['components'] as { schemas: Record<string, Json> }).schemas
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const groups = (document['tags'] as { name: string }[]).map(({ name }) => {
    const mine = all.filter(({ operation }) => operation.tags.includes(name))
    return `<section><h2>${escaped(name)}</h2>${mine.map(({ path, method, operation }) => section(path, method, operation)).join('\n')}</section>`
  })
  const shapes = Object.entries(schemas).map(
    ([name, schema]) =>
      `<section id="schema-${escaped(name)}"><h3>${escaped(name)}</h3><p>${prose(textIn(schema, 'description'))}</p>${members(schema)}</section>`,
  )
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(info.title)} API</title><style>${STYLE}</style></head>
<body><h1>${escaped(info.title)} API ${escaped(info.version)}</h1><p>${prose(info.description)} The document itself is at <a href="/openapi.json">/openapi.json</a>.</p>
<main>${groups.join('\n')}<h2>Shapes</h2>${shapes.join('\n')}</main></body></html>`
}
