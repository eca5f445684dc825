// Triggers: what arrives from outside, and what it comes to. Pure: a delivery whose sender is known, and the rules of its
// trigger, make the start of a run, a signal to one, or nothing.
import { canonical, shown } from '../kernel/json.ts'
import type { Outcome, Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import { isName } from './definition.ts'
import type { Source } from './template.ts'
import { filled, filledName, pointed, pointerFault, templateFault } from './template.ts'

/** How a sender shows who it is. */
export const triggerKinds = ['github', 'standard', 'token'] as const
export type TriggerKind = (typeof triggerKinds)[number]

/** What became of a delivery. */
export const arrivalOutcomes = ['started', 'known', 'signaled', 'ignored', 'refused'] as const
export type ArrivalOutcome = (typeof arrivalOutcomes)[number]

/** What a trigger is made of. It names its secrets, and never has them. */
export interface TriggerSpec {
  readonly secrets: readonly string[]
  /** The engine's own actor at the sender, by login or id; empty: it has none; null: nobody has said. */
  readonly own: readonly (string | number)[] | null
  /** Where a payload says who caused it. Default: where the kind has it. */
  readonly actorAt: readonly string[] | null
  /** Of the kind `token`: the headers that carry the token, the delivery's id and the event. */
  readonly tokenHeader: string | null
  readonly deliveryHeader: string | null
  readonly eventHeader: string | null
  readonly rules: readonly Rule[]
}

/** The first rule of a trigger that takes a delivery says what it comes to. */
export interface Rule {
  /** Events, or `event.action`; null takes any. */
  readonly events: readonly string[] | null
  /** What must stand at these pointers: a value, or a list of those that will do. */
  readonly where: Readonly<Record<string, unknown>>
  readonly workflow: string
  /** Templates that come to a name. */
  readonly key: unknown
  readonly owner: unknown
  readonly start: StartRule | null
  readonly signal: SignalRule | null
}

export interface StartRule {
  readonly input: unknown
  readonly queue: string | null
  readonly labels: readonly string[]
  readonly priority: number
}

export interface SignalRule {
  readonly name: string
  readonly payload: unknown
}

/** A delivery whose sender has shown who it is. */
export interface Delivery {
  readonly id: string
  readonly event: string | null
  readonly payload: unknown
}

/** What a delivery comes to. With both, the signal is sent where a run has the key, and else one is started. */
export interface Action {
  readonly workflow: string
  readonly key: string | null
  readonly owner: string
  readonly start: (Omit<StartRule, 'input'> & { readonly input: unknown }) | null
  readonly signal: { readonly name: string; readonly payload: unknown } | null
}

export type Planned = Outcome<{ readonly action: Action } | { readonly ignored: string }>

/** Words that templates may use beside pointers. */
const FACTS = ['delivery', 'event', 'trigger']
const WHOLE = { $: '' }

const ACTOR_AT: Readonly<Record<TriggerKind, readonly string[]>> = {
  github: ['/sender/login', '/sender/id'],
  standard: [],
  token: [],
}
const actorAt = (kind: TriggerKind, { actorAt: given }: TriggerSpec): readonly string[] =>
  given ?? ACTOR_AT[kind]

/** Whether deliveries say who caused them, and nobody has said which of those the engine itself is. */
export const ownActorUnknown = (kind: TriggerKind, spec: TriggerSpec): boolean =>
  spec.own === null && actorAt(kind, spec).length > 0

/** Who caused a delivery, where that is the engine itself. */
const ownActor = (kind: TriggerKind, spec: TriggerSpec, payload: unknown): string | null => {
  const own = new Set((spec.own ?? []).map((each) => String(each).toLowerCase()))
  for (const pointer of actorAt(kind, spec)) {
    const actor = pointed(payload, pointer)
    if (
      (typeof actor === 'string' || typeof actor === 'number') &&
      own.has(String(actor).toLowerCase())
    )
      return String(actor)
  }
  return null
}

/** What a delivery comes to by the rules of its trigger. */
export const planArrival = (
  name: string,
  kind: TriggerKind,
  spec: TriggerSpec,
  delivery: Delivery,
): Planned => {
  const { id, event, payload } = delivery
  const own = ownActor(kind, spec, payload)
  if (own !== null)
    return { ok: true, ignored: `${own} caused it, which is the engine’s own actor there` }
  const rule = spec.rules.find((each) => takes(each, event, payload))
  if (!rule)
    return {
      ok: true,
      ignored: `no rule of ${name} takes ${event === null ? 'it' : `the event ${event}${actionOf(payload)}`}`,
    }
  return planned(rule, { payload, facts: { delivery: id, event, trigger: name } })
}

const actionOf = (payload: unknown): string => {
  const action = pointed(payload, '/action')
  return typeof action === 'string' ? `.${action}` : ''
}

const takes = (rule: Rule, event: string | null, payload: unknown): boolean =>
  (rule.events === null ||
    (event !== null &&
      rule.events.some((each) => each === event || each === `${event}${actionOf(payload)}`))) &&
  Object.entries(rule.where).every(([pointer, wanted]) => {
    const found = pointed(payload, pointer)
    if (found === undefined) return false
    const text = canonical(found)
    return (Array.isArray(wanted) ? wanted : [wanted]).some((each) => canonical(each) === text)
  })

const planned = (rule: Rule, source: Source): Planned => {
  const { workflow, start, signal } = rule
  const key = rule.key === null ? null : filledName(rule.key, 'key', source)
  if (key && !key.ok) return key
  const owner = rule.owner === null ? null : filledName(rule.owner, 'owner', source)
  if (owner && !owner.ok) return owner
  const input = start ? filled(start.input ?? WHOLE, source) : null
  if (input && !input.ok) return input
  const payload = signal ? filled(signal.payload ?? WHOLE, source) : null
  if (payload && !payload.ok) return payload
  return {
    ok: true,
    action: {
      workflow,
      key: key?.name ?? null,
      owner: owner?.name ?? '',
      start: start && input ? { ...start, input: input.value } : null,
      signal: signal && payload ? { name: signal.name, payload: payload.value } : null,
    },
  }
}

/** What of a trigger could never work, said when it is set; null where nothing is. */
export const specFault = (kind: TriggerKind, spec: TriggerSpec): Refusal | null => {
  const faults = [
    ...(spec.secrets.length === 0 ? ['secrets is empty; name at least one secret'] : []),
    ...(kind === 'token' ? [] : onlyOfTokens(kind, spec)),
    ...(spec.actorAt ?? []).map((each) => pointerFault(each)),
    ...(spec.own !== null && spec.own.length > 0 && actorAt(kind, spec).length === 0
      ? ['own names actors, and nothing says where a payload has its actor; give actorAt']
      : []),
    ...spec.rules.flatMap((rule, i) =>
      ruleFaults(rule).map((fault) => (fault === null ? null : `rules[${i}]: ${fault}`)),
    ),
  ].filter((fault) => fault !== null)
  return faults.length === 0
    ? null
    : refuse('invalid_request', `the trigger cannot be used: ${faults.join('; ')}`, { faults })
}

const onlyOfTokens = (kind: TriggerKind, spec: TriggerSpec): string[] =>
  (['tokenHeader', 'deliveryHeader', 'eventHeader'] as const)
    .filter((header) => spec[header] !== null)
    .map((header) => `${header} is of the kind token; a ${kind} sender has headers of its own`)

const ruleFaults = (rule: Rule): (string | null)[] => [
  ...Object.keys(rule.where).map((pointer) => pointerFault(pointer)),
  ...[rule.key, rule.owner, rule.start?.input, rule.signal?.payload].map((each) =>
    templateFault(each, FACTS),
  ),
  rule.signal !== null && rule.key === null
    ? 'it sends a signal and has no key; say by which key its run is found'
    : null,
  rule.signal !== null && !isName(rule.signal.name)
    ? `the signal’s name is ${shown(rule.signal.name)}; expected 1 to 200 characters`
    : null,
]
