// Whether a delivery comes from who has the secret: checked over its bytes as they came, in constant time, before anything
// of it is read. Pure; what is wrong is a sentence for the log alone, since a stranger is told nothing.
import { digestOf, sameBytes, sameText, signatureOf } from '../kernel/digest.ts'
import type { TriggerKind, TriggerSpec } from './trigger.ts'

/** What came, as it came. */
export interface Received {
  /** A header's value, by its small letters; null where there is none. */
  header(name: string): string | null
  readonly bytes: Uint8Array
}

export type Checked =
  | { readonly known: true; readonly delivery: string; readonly event: string | null }
  | { readonly known: false; readonly why: string }

/** How far a sender's clock may be from ours, so that what was overheard cannot be sent again later. */
export const TOLERANCE_MS = 300_000
const DELIVERY_MAX = 200
/** Signatures of one delivery that are looked at. */
const SIGNATURES_MAX = 20

type Spec = Pick<TriggerSpec, 'tokenHeader' | 'deliveryHeader' | 'eventHeader'>

export const check = (
  kind: TriggerKind,
  spec: Spec,
  secrets: readonly string[],
  received: Received,
  now: number,
): Checked => {
  const checked = kinds[kind](spec, secrets, received, now)
  return checked.known && (checked.delivery === '' || checked.delivery.length > DELIVERY_MAX)
    ? {
        known: false,
        why: `its delivery id has ${checked.delivery.length} characters; expected 1 to ${DELIVERY_MAX}`,
      }
    : checked
}

const unknown = (why: string): Checked => ({ known: false, why })

/** All are compared, so that the time says nothing of which was near. */
const anyOf = (found: readonly boolean[]): boolean => found.filter(Boolean).length > 0

const github = (_spec: Spec, secrets: readonly string[], { header, bytes }: Received): Checked => {
  const given = /^sha256=([0-9a-f]{64})$/i.exec(header('x-hub-signature-256') ?? '')?.[1]
  const signature = Buffer.from(given ?? '', 'hex')
  const right = anyOf(
    secrets.map((secret) => sameBytes(signatureOf(Buffer.from(secret), bytes), signature)),
  )
  if (given === undefined) return unknown('it has no X-Hub-Signature-256')
  if (!right) return unknown('its X-Hub-Signature-256 is of none of the secrets')
  const delivery = header('x-github-delivery')
  return delivery === null
    ? unknown('it has no X-GitHub-Delivery')
    : { known: true, delivery, event: header('x-github-event') }
}

/** The key in a secret as Standard Webhooks write it; null where it is none. */
export const standardKey = (secret: string): Uint8Array | null => {
  const text = secret.replace(/^whsec_/, '')
  return /^[A-Za-z0-9+/]{4,}={0,2}$/.test(text) ? Buffer.from(text, 'base64') : null
}

const standard = (
  _spec: Spec,
  secrets: readonly string[],
  { header, bytes }: Received,
  now: number,
): Checked => {
  // senders that are older than the standard write `svix-`
  const part = (name: string): string | null => header(`webhook-${name}`) ?? header(`svix-${name}`)
  const id = part('id')
  const at = part('timestamp')
  const given = (part('signature') ?? '')
    .split(' ', SIGNATURES_MAX)
    .flatMap((each) => (each.startsWith('v1,') ? [Buffer.from(each.slice(3), 'base64')] : []))
  const right = anyOf(
    secrets.flatMap((secret) => {
      const key = standardKey(secret)
      if (key === null) return []
      const wanted = signatureOf(key, `${id}.${at}.`, bytes)
      return given.map((signature) => sameBytes(wanted, signature))
    }),
  )
  if (id === null || at === null || given.length === 0)
    return unknown('it lacks webhook-id, webhook-timestamp or a webhook-signature of v1')
  if (!right) return unknown('its webhook-signature is of none of the secrets')
  const seconds = /^\d{1,12}$/.test(at) ? Number(at) : Number.NaN
  const off = Math.abs(seconds * 1_000 - now)
  return off <= TOLERANCE_MS
    ? { known: true, delivery: id, event: null }
    : unknown(
        `its webhook-timestamp is ${at}, which is not within five minutes of this server’s clock`,
      )
}

const BEARER = 'authorization'

const token = (spec: Spec, secrets: readonly string[], { header, bytes }: Received): Checked => {
  const name = spec.tokenHeader ?? BEARER
  const text = header(name)
  const given =
    name === BEARER ? (/^Bearer\s+(.+)$/i.exec(text ?? '')?.[1]?.trim() ?? '') : (text ?? '')
  const right = anyOf(secrets.map((secret) => sameText(secret, given)))
  if (given === '') return unknown(`it has no token in ${name}`)
  if (!right) return unknown(`its token in ${name} is none of the secrets`)
  const delivery =
    spec.deliveryHeader === null ? `sha256:${digestOf(bytes)}` : header(spec.deliveryHeader)
  return delivery === null
    ? unknown(`it has no delivery id in ${spec.deliveryHeader}`)
    : {
        known: true,
        delivery,
        event: spec.eventHeader === null ? null : header(spec.eventHeader),
      }
}

const kinds: Readonly<Record<TriggerKind, typeof standard>> = { github, standard, token }
