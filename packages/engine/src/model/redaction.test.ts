import { describe, expect, it } from 'vitest'
import { isSecretName, redactedValue, redaction, secretsIn } from './redaction.ts'

const none = redaction([])
const r = '[redacted]'

describe('SEC-04 what must not be read in a log', () => {
  it.each([
    ['POST https://ana:pa55word@host/x?y=1', `POST https://ana:${r}@host/x?y=1`],
    ['authorization: Bearer abcdefgh12345', `authorization: ${r} abcdefgh12345`],
    ['used Bearer abcdefgh12345 there', `used Bearer ${r} there`],
    ['jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.s5gAb-cd end', `jwt ${r} end`],
    [`token ghp_${'a1B2'.repeat(9)}`, `token ${r}`],
    ['id AKIAIOSFODNN7EXAMPLE.', `id ${r}.`],
    [`key sk-ant-api03-${'x1'.repeat(12)}`, `key ${r}`],
    ['password=hunter22 user=ana', `password=${r} user=ana`],
    ['{"apiKey": "a b\\"c", "user": "ana"}', `{"apiKey": ${r}, "user": "ana"}`],
    ['-----BEGIN RSA PRIVATE KEY-----abc-----END RSA PRIVATE KEY----- x', `${r} x`],
  ])('%s', (text, shown) => {
    // the header's value is taken by its name, or by its scheme: either way nothing of it is left
    const out = none(text)
    if (text.startsWith('authorization')) expect(out).not.toContain('abcdefgh12345')
    else expect(out).toBe(shown)
  })

  it.each([
    'took 12 s of 3 tokens in all',
    'the keyboard and the monkey',
    'GET /runs/run_01J0000000000000000000000X 200',
    'wrote 4,096 bytes to /var/lib/leasehold/work',
    'passwords are checked',
  ])('leaves what is none: %s', (text) => {
    expect(none(text)).toBe(text)
  })

  it('takes known values out in every form in which they may be written', () => {
    const redact = redaction(['p"ss w/rd!', 'line-one\nline-two'])
    expect(redact('it is p"ss w/rd!')).toBe(`it is ${r}`)
    expect(redact(JSON.stringify({ a: 'p"ss w/rd!' }))).toBe(`{"a":"${r}"}`)
    expect(redact(`?q=${encodeURIComponent('p"ss w/rd!')}&b`)).toBe(`?q=${r}&b`)
    expect(redact('first line-one then line-two')).toBe(`first ${r} then ${r}`)
    expect(redaction(['ab', ''])('abc ab')).toBe('abc ab')
    expect(redaction(['a.c.e.g'])('abcdefg')).toBe('abcdefg')
  })

  it('knows secrets of an environment by their names, by how they look and because they are named', () => {
    const env = {
      PATH: '/usr/bin:/bin',
      HOME: '/home/ana',
      NODE_ENV: 'production',
      DB_PASSWORD: 'hunter22',
      githubToken: 'abcdefgh',
      OPAQUE: 'a1b2c3d4e5f6g7h8i9j0',
      INTERNAL_HOST: 'node-17.internal',
      EMPTY: undefined,
    }
    expect(secretsIn(env)).toEqual(['hunter22', 'abcdefgh', 'a1b2c3d4e5f6g7h8i9j0'])
    expect(secretsIn(env, ['INTERNAL_HOST'])).toContain('node-17.internal')
    expect(['apiKey', 'X-Auth', 'session_token'].every(isSecretName)).toBe(true)
    expect(['monkey', 'tokenizer', 'author'].some(isSecretName)).toBe(false)
  })

  it('takes out what stands under a secret name, at any depth', () => {
    const value = {
      user: 'ana',
      db: { dbPassword: 'x', tries: 3, keys: [1], ok: true },
      t: 'Bearer abcdefgh1',
    }
    expect(redactedValue(value, none)).toEqual({
      user: 'ana',
      db: { dbPassword: r, tries: 3, keys: r, ok: true },
      t: `Bearer ${r}`,
    })
  })
})

it.each([
  ['hex', 'deadbeef'],
  ['words with dashes', 'a-'],
  ['heads of tokens', '-eyJ'],
  ['schemes', 'http://'],
  ['users of addresses', '://a:b'],
  ['names of secrets', 'password'],
  ['names of secrets and space', 'token   '],
  ['names of secrets with a quote that ends nowhere', `secret='x" `],
  ['heads of keys', '-----BEGIN A PUBLIC KEY'],
])(
  'SEC-04 EX-25 a long line of %s is looked at once from its beginning to its end, not anew from every place',
  (_what, part) => {
    // by the square of its length this would take minutes
    const text = part.repeat(2_000_000 / part.length)
    expect(none(`${text} Bearer abcdefgh12345`).endsWith(`Bearer ${r}`)).toBe(true)
  },
)
