// A delivery from outside: who sent it is checked over its bytes before anything of it is read, and whether it came before
// is looked up before it is parsed. A stranger is told one sentence, whatever there is and is not; the log says the rest.
import { jsonFault, messageOf } from '../../kernel/json.ts'
import type { Outcome, Refusal } from '../../kernel/outcome.ts'
import { refuse } from '../../kernel/outcome.ts'
import { seldom } from '../../kernel/seldom.ts'
import { shardOfOwner } from '../../model/shard.ts'
import type { Received } from '../../model/signature.ts'
import { check } from '../../model/signature.ts'
import type { Action } from '../../model/trigger.ts'
import { ownActorUnknown, planArrival } from '../../model/trigger.ts'
import type { Hook } from '../../queries/triggers.ts'
import { arrival, hook } from '../../queries/triggers.ts'
import type { Taken } from '../../transitions/take-arrival.ts'
import { takeArrival } from '../../transitions/take-arrival.ts'
import type { AnswersTo, Shared } from './answers.ts'
import type { Engine } from '../engine.ts'
import { atShard, isAway, PATIENCE_MS, within } from '../shards/shard-faults.ts'

/** What is checked in place of a trigger that is not there, so that its absence takes as long. */
const NOBODY: Hook = {
  kind: 'github',
  spec: {
    secrets: [],
    own: null,
    actorAt: null,
    tokenHeader: null,
    deliveryHeader: null,
    eventHeader: null,
    rules: [],
  },
  paused: false,
}
const NO_SECRET = 'whsec_bm9ib2R5IGtub3dzIHRoaXMgb25l'

const stranger = (): Refusal =>
  refuse(
    'unauthorized',
    'the delivery does not show that it comes from a sender of this hook; check its address, and the secret at the sender',
  )

const ignored = (note: string): Outcome<Taken> => ({
  ok: true,
  outcome: 'ignored',
  run: null,
  note,
  repeated: false,
})

/**
 * A trigger is on each database of the store, and what a delivery starts or signals is where its owner is: there it is taken, once.
 * One that is down keeps back what is for it and nothing else.
 */
export const takeDelivery = (shared: Shared): AnswersTo<'takeDelivery'>['takeDelivery'] => {
  const { engines, secrets } = shared
  const { ports } = shared.engine
  const say = seldom(ports.log, ports.time, 'warn')

  return async ({ params: { name }, raw }) => {
    const found = await firstThere(engines, (engine) => engine.read((tx) => hook(tx, name)))
    const { kind, spec, paused } = found ?? NOBODY
    const known = spec.secrets.flatMap((each) => secrets.get(each) ?? [])
    const checked = check(kind, spec, known.length > 0 ? known : [NO_SECRET], raw, ports.time.now())
    if (!found || known.length === 0 || !checked.known) {
      const why = !found
        ? 'there is no trigger of this name'
        : known.length === 0
          ? `this server has none of its secrets: ${spec.secrets.join(', ')}`
          : checked.known
            ? ''
            : checked.why
      say('hook.refused', found ? name : 'nobody', { trigger: name, why })
      return stranger()
    }
    if (paused)
      return refuse(
        'trigger_paused',
        `the trigger ${name} is paused; bring the delivery again once it is resumed`,
        { name },
      )
    const { delivery } = checked
    const before = await arrivalOn(engines, name, delivery)
    if (before) {
      const { outcome, run, note } = before
      return { ok: true, outcome, run, note, repeated: true }
    }
    const read = payloadOf(raw)
    if (!read.ok) return read
    const { payload } = read
    const event = checked.event ?? (kind === 'standard' ? typeOf(payload) : null)
    if (kind === 'github' && event === 'ping') return ignored('a ping; the hook is heard')
    if (ownActorUnknown(kind, spec))
      say('hook.own_actor_unknown', name, {
        trigger: name,
        why: 'nobody has said who the engine’s own actor is there, so that what it causes may start it again',
      })
    const plan = planArrival(name, kind, spec, { id: delivery, event, payload })
    if (plan.ok && 'ignored' in plan) {
      ports.log.debug('hook.ignored', {
        trigger: name,
        delivery,
        hookEvent: event,
        why: plan.ignored,
      })
      return ignored(plan.ignored)
    }
    const action = plan.ok ? plan.action : plan
    const shard = shardOfOwner(plan.ok ? plan.action.owner : '', engines.length)
    const engine = engines[shard] as Engine
    if (plan.ok) await engine.learn([plan.action])
    const refused = plan.ok ? startFault({ ...shared, engine }, plan.action) : null
    const run = engine.ports.ids.next('run')
    const { answer } = await atShard(shard, engines.length, () =>
      engine.act((tx, context) =>
        takeArrival(
          tx,
          { hook: name, delivery, event: event?.slice(0, 200) ?? null, run },
          refused ?? action,
          context,
        ),
      ),
    )
    if (!answer.ok)
      ports.log.warn('hook.not_taken', {
        trigger: name,
        delivery,
        hookEvent: event,
        code: answer.code,
      })
    return answer
  }
}

/** What the first of them says that answers. */
const firstThere = async <T>(
  engines: readonly Engine[],
  ask: (engine: Engine) => Promise<T>,
): Promise<T> => {
  for (const engine of engines.slice(0, -1))
    try {
      return await within(engine.ports.timers, PATIENCE_MS, ask(engine))
    } catch (error) {
      if (!isAway(error)) throw error
    }
  return ask(engines.at(-1) as Engine)
}

/**
 * What became of the delivery when it came before. It is on another shard than it would go to today where the trigger has changed
 * since; of one that does not answer nothing is known, and the one that takes it looks once more.
 */
const arrivalOn = async (engines: readonly Engine[], name: string, delivery: string) => {
  const look = (engine: Engine) => engine.read((tx) => arrival(tx, name, delivery))
  const [only] = engines
  if (engines.length === 1 && only) return look(only)
  const found = await Promise.all(
    engines.map((engine) =>
      within(engine.ports.timers, PATIENCE_MS, look(engine)).catch((error: unknown) => {
        if (isAway(error)) return null
        throw error
      }),
    ),
  )
  return found.find((each) => each !== null) ?? null
}

/** Why its run could not start, of what needs no row to be known. */
export const startFault = (
  { engine, checkInput }: Pick<Shared, 'engine' | 'checkInput'>,
  { workflow, start }: Action,
): Refusal | null => (start ? checkInput(engine.catalog, workflow, null, start.input) : null)

/** The event of a message by Standard Webhooks stands in its payload. */
export const typeOf = (payload: unknown): string | null => {
  const type = (payload as { type?: unknown } | null)?.type
  return typeof type === 'string' ? type : null
}

/** What the bytes say: JSON in UTF-8, bare or as the `payload` of a form, which GitHub sends where nobody chose. */
const payloadOf = ({ bytes, header }: Received): Outcome<{ readonly payload: unknown }> => {
  const encoding = header('content-encoding')
  if (encoding !== null && encoding.toLowerCase() !== 'identity')
    return notRead(`the body is encoded as ${encoding.slice(0, 40)}; send it as it is`)
  let text: string | null
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return notRead('the body is not UTF-8; send JSON in UTF-8')
  }
  if (/^application\/x-www-form-urlencoded\b/i.test(header('content-type') ?? ''))
    text = new URLSearchParams(text).get('payload')
  if (text === null) return notRead('the form has no member payload; send JSON')
  const fault = jsonFault(text)
  if (fault !== null) return notRead(`the body cannot be read: ${fault}`)
  try {
    return { ok: true, payload: JSON.parse(text) as unknown }
  } catch (error) {
    return notRead(`the body cannot be read: ${messageOf(error)}`)
  }
}

const notRead = (message: string): Refusal => refuse('invalid_request', message)
