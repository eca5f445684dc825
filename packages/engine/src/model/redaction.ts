// What must not be read in a log: values that are known to be secret, and what has the shape of a secret. It is taken out
// where it was written, so that it never crosses a wire and is never stored.
export const REDACTED = '[redacted]'

export type Redact = (text: string) => string

/** A shorter value would be found by chance, and is no secret to speak of. */
const SECRET_MIN = 6

const SECRET_NAME =
  /(?:^|[_-])(?:pass(?:word|wd|phrase)?|pwd|secrets?|tokens?|api_?keys?|keys?|credentials?|auth(?:orization)?|cookie|dsn|private|signature)(?:$|[_-])/i
const inSnake = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1_$2')

/** Whether what has this name is a secret by it, as `API_KEY` or `dbPassword`. */
export const isSecretName = (name: string): boolean => SECRET_NAME.test(inSnake(name))

/** Long, of letters and digits, and neither a path nor words: nobody has typed it. */
const looksSecret = (value: string): boolean =>
  value.length >= 20 && /^[\w+=.~:-]+$/.test(value) && /\d/.test(value) && /[A-Za-z]/.test(value)

/** The values of an environment that are secret by their name, by how they look, or because they are named here. */
export const secretsIn = (
  env: Readonly<Record<string, string | undefined>>,
  named: readonly string[] = [],
): string[] =>
  Object.entries(env).flatMap(([name, value = '']) =>
    named.includes(name) || isSecretName(name) || looksSecret(value) ? [value] : [],
  )

// a text is as long as a body likes, and is looked at where everything else waits: no shape may scan on from every place
const SHAPES: readonly (readonly [RegExp, string])[] = [
  // of an address, who and where are left
  [/(:\/\/[^\s:/@]*:)[^\s/@]+(@)/g, `$1${REDACTED}$2`],
  [/\b(bearer|basic)(\s+)[\w+/=.~-]{8,}/gi, `$1$2${REDACTED}`],
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, REDACTED],
  [/\b(?:gh[pousr]_\w{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|npm_\w{30,})/g, REDACTED],
  [/\bxox[abeoprs]-[\w-]{10,}/g, REDACTED],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, REDACTED],
  [/\bAIza[\w-]{35}/g, REDACTED],
  [/\b(?:sk|rk|pk)[_-](?:live|test|ant|proj|or)[_-][\w-]{12,}|\bsk-\w{32,}/g, REDACTED],
  [/\bwhsec_[\w+/=]{16,}/g, REDACTED],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, REDACTED],
  // what follows a name that says so: `password=…`, `"apiKey": "…"`
  [
    /((?:password|passwd|secret|token|api[_-]?key|credential|authorization)s?["']?\s*[=:]\s*)(?!\[redacted\])(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',;&}]{4,})/gi,
    `$1${REDACTED}`,
  ],
]

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** As it stands in a text, in a JSON text and in an address; of several lines each. */
const formsOf = (secret: string): string[] =>
  [secret, ...secret.split(/\r?\n/)]
    .flatMap((each) => [each, JSON.stringify(each).slice(1, -1), encoded(each)])
    .filter((each) => each.trim().length >= SECRET_MIN)

const encoded = (text: string): string => {
  try {
    return encodeURIComponent(text)
  } catch {
    // half a character cannot stand in an address
    return text
  }
}

/** Takes these values out of a text, and what looks like a secret. */
export const redaction = (secrets: readonly string[]): Redact => {
  const forms = [...new Set(secrets.flatMap(formsOf))].sort((a, b) => b.length - a.length)
  const known = forms.length === 0 ? null : new RegExp(forms.map(literal).join('|'), 'g')
  return (text) => {
    let out = known ? text.replace(known, REDACTED) : text
    for (const [shape, instead] of SHAPES) out = out.replace(shape, instead)
    return out
  }
}

/** Takes out of a JSON value what stands under a secret name, at any depth, and secrets in its texts. */
export const redactedValue = (value: unknown, redact: Redact, depth = 0): unknown => {
  if (typeof value === 'string') return redact(value)
  if (typeof value !== 'object' || value === null || depth > 20) return value
  if (Array.isArray(value)) return value.map((each) => redactedValue(each, redact, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      redact(name),
      isSecretName(name) && each !== null && typeof each !== 'boolean'
        ? REDACTED
        : redactedValue(each, redact, depth + 1),
    ]),
  )
}
