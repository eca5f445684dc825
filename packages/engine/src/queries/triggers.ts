// Triggers as people see them, with what keeps one from working as meant; and what a delivery meets first.
import { readOr, storedObject } from '../kernel/stored.ts'
import { standardKey } from '../model/signature.ts'
import type { TriggerKind, TriggerSpec } from '../model/trigger.ts'
import { ownActorUnknown } from '../model/trigger.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { ArrivalRow, TriggerRow } from '../store/tables/triggers.ts'
import {
  arrivalOf,
  newestArrivals,
  triggerByName,
  triggersAfter,
} from '../store/tables/triggers.ts'

/** Secrets by their names, as the server's configuration has them. */
export type Secrets = ReadonlyMap<string, string>

const MOST = 1_000
const ARRIVALS_SHOWN = 50

const NOTHING: TriggerSpec = {
  secrets: [],
  own: [],
  actorAt: null,
  tokenHeader: null,
  deliveryHeader: null,
  eventHeader: null,
  rules: [],
}

/** What a trigger's row says of it; one that somebody has spoilt takes nothing. */
export const specOf = ({ name, spec }: Pick<TriggerRow, 'name' | 'spec'>): TriggerSpec =>
  readOr(
    () => ({ ...NOTHING, ...storedObject(spec, `the trigger ${name}`) }),
    () => NOTHING,
  )

/** What keeps a trigger from working as meant on this server, each with what mends it. */
export const triggerFaults = (kind: TriggerKind, spec: TriggerSpec, secrets: Secrets): string[] => [
  ...spec.secrets
    .filter((each) => !secrets.has(each))
    .map(
      (each) =>
        `this server has no secret named ${each}; set it in hookSecrets (LEASEHOLD_HOOK_SECRETS)`,
    ),
  ...(kind !== 'standard'
    ? []
    : spec.secrets
        .filter((each) => secrets.has(each) && standardKey(secrets.get(each) ?? '') === null)
        .map(
          (each) =>
            `the secret ${each} is none of Standard Webhooks; expected whsec_ and its key in base64`,
        )),
  ...(ownActorUnknown(kind, spec)
    ? [
        'nobody has said who the engine’s own actor is there, so that what it causes may start it again; set own to its login or id, or to [] where it has none',
      ]
    : []),
]

const triggerView = (row: TriggerRow, secrets: Secrets) => {
  const spec = specOf(row)
  return {
    name: row.name,
    kind: row.kind,
    ...spec,
    path: `/hooks/${row.name}`,
    faults: triggerFaults(row.kind, spec, secrets),
    pausedAt: row.paused_at,
    pausedBy: row.paused_by,
    why: row.why,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    updatedBy: row.updated_by,
  }
}

export function* triggers(tx: Tx, secrets: Secrets) {
  const [rows] = yield* ask(triggersAfter('', MOST))
  return { now: tx.now, triggers: rows.map((row) => triggerView(row, secrets)) }
}

/** A trigger with its newest deliveries. */
export function* triggerDetail(tx: Tx, name: string, secrets: Secrets) {
  const [[row], arrivals] = yield* ask(triggerByName(name), newestArrivals(name, ARRIVALS_SHOWN))
  if (!row) return null
  return {
    now: tx.now,
    trigger: triggerView(row, secrets),
    deliveries: arrivals.map((each) => ({
      delivery: each.delivery,
      event: each.event,
      outcome: each.outcome,
      run: each.run,
      note: each.note,
      times: each.times,
      at: each.at,
      lastAt: each.last_at,
    })),
  }
}

export interface Hook {
  readonly kind: TriggerKind
  readonly spec: TriggerSpec
  readonly paused: boolean
}

/** A trigger as a delivery meets it. */
export function* hook(_tx: Tx, name: string): Steps<Hook | null> {
  const [[row]] = yield* ask(triggerByName(name))
  return row ? { kind: row.kind, spec: specOf(row), paused: row.paused_at !== null } : null
}

/** What became of a delivery that came before; null where it did not, or may be taken anew. */
export function* arrival(_tx: Tx, name: string, delivery: string): Steps<ArrivalRow | null> {
  const [[row]] = yield* ask(arrivalOf(name, delivery))
  return row && row.outcome !== 'refused' ? row : null
}

/** How many triggers do not work as meant; anybody may read it, so it names none. */
export function* triggerWarnings(tx: Tx, secrets: Secrets): Steps<string[]> {
  const { triggers: all } = yield* triggers(tx, secrets)
  const faulty = all.filter(({ faults }) => faults.length > 0).length
  return faulty === 0
    ? []
    : [
        `${faulty} ${faulty === 1 ? 'trigger does' : 'triggers do'} not work as meant; \`leasehold doctor\` says what is missing`,
      ]
}
