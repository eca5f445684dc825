// Answers about triggers.
import type * as z from 'zod'
import type { Outcome, Refusal } from '../../kernel/outcome.ts'
import type { Rule, TriggerSpec } from '../../model/trigger.ts'
import { planArrival } from '../../model/trigger.ts'
import type { Frozen } from '../../protocol/route.ts'
import type { triggerRoutes } from '../../protocol/trigger-routes.ts'
import type { newTrigger, triggerDetail as detailShape } from '../../protocol/trigger-shapes.ts'
import { hook, triggerDetail, triggers } from '../../queries/triggers.ts'
import {
  noTrigger,
  pauseTrigger,
  removeTrigger,
  resumeTrigger,
  setTrigger,
} from '../../transitions/set-trigger.ts'
import type { AnswersTo, Shared } from './answers.ts'
import { startFault, takeDelivery, typeOf } from './take-delivery.ts'

type Detail = Frozen<z.output<typeof detailShape>>

export const triggerAnswers = (shared: Shared): AnswersTo<keyof typeof triggerRoutes> => {
  const { engine, secrets } = shared

  const detail = async (name: string): Promise<Detail | Refusal> =>
    (await engine.read((tx) => triggerDetail(tx, name, secrets))) ?? noTrigger(name)

  /** The trigger as it is after what was asked, or why that was refused. */
  const shown = async (done: Promise<Outcome<{ name: string }>>): Promise<Detail | Refusal> => {
    const answer = await done
    return answer.ok ? detail(answer.name) : answer
  }

  return {
    listTriggers: () => engine.read((tx) => triggers(tx, secrets)),

    getTrigger: ({ params: { name } }) => detail(name),

    async setTrigger({ params: { name }, body, actor, once }) {
      await engine.learn(body.rules)
      const made = { name, kind: body.kind, spec: specOf(body), by: actor }
      return shown(once((tx, context) => setTrigger(tx, made, context)))
    },

    pauseTrigger: ({ params: { name }, body, actor, once }) =>
      shown(once((tx) => pauseTrigger(tx, name, actor, body.why ?? null))),

    resumeTrigger: ({ params: { name }, once }) => shown(once((tx) => resumeTrigger(tx, name))),

    async tryTrigger({ params: { name }, body }) {
      const found = await engine.read((tx) => hook(tx, name))
      if (!found) return noTrigger(name)
      const { kind, spec } = found
      const { payload } = body
      const event = body.event ?? (kind === 'standard' ? typeOf(payload) : null)
      const delivery = { id: body.delivery ?? 'a try', event, payload }
      const plan = planArrival(name, kind, spec, delivery)
      if (!plan.ok) return plan
      if ('ignored' in plan) return { ignored: plan.ignored, action: null }
      const { action } = plan
      await engine.learn([action])
      const no = startFault(shared, action)
      return no ?? { ignored: null, action }
    },

    async deleteTrigger({ params: { name } }) {
      return (await engine.act((tx) => removeTrigger(tx, name))).answer
    },

    takeDelivery: takeDelivery(shared),
  }
}

/** What a body says of a trigger, with what it leaves out. */
const specOf = (body: z.output<typeof newTrigger>): TriggerSpec => ({
  secrets: body.secrets,
  own: body.own ?? null,
  actorAt: body.actorAt ?? null,
  tokenHeader: body.tokenHeader ?? null,
  deliveryHeader: body.deliveryHeader ?? null,
  eventHeader: body.eventHeader ?? null,
  rules: body.rules.map(ruleOf),
})

const WHOLE = { $: '' }

const ruleOf = (rule: z.output<typeof newTrigger>['rules'][number]): Rule => {
  const start = rule.start ?? (rule.signal ? null : {})
  return {
    events: rule.events ?? null,
    where: rule.where ?? {},
    workflow: rule.workflow,
    key: rule.key ?? null,
    owner: rule.owner ?? null,
    start: start && {
      input: start.input === undefined ? WHOLE : start.input,
      queue: start.queue ?? null,
      labels: start.labels ?? [],
      priority: start.priority ?? 0,
    },
    signal: rule.signal
      ? {
          name: rule.signal.name,
          payload: rule.signal.payload === undefined ? WHOLE : rule.signal.payload,
        }
      : null,
  }
}
