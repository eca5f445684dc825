// Triggers as people set them: made or changed, paused, resumed, taken away.
import type { Outcome } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Follow } from '../model/follow.ts'
import { nothing } from '../model/follow.ts'
import { definitionOf } from '../model/definition.ts'
import type { PlanContext } from '../model/start.ts'
import type { TriggerKind, TriggerSpec } from '../model/trigger.ts'
import { specFault } from '../model/trigger.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask, finish } from '../store/sql.ts'
import {
  pauseTriggerRow,
  putTrigger,
  removeTriggerRow,
  resumeTriggerRow,
  triggerByName,
} from '../store/tables/triggers.ts'

type Answered = Steps<{ answer: Outcome<{ readonly name: string }>; follow: Follow }>

export const noTrigger = (name: string) =>
  refuse('not_found', `there is no trigger ${name}; \`leasehold triggers\` lists them`, { name })

export interface NewTrigger {
  readonly name: string
  readonly kind: TriggerKind
  readonly spec: TriggerSpec
  readonly by: string
}

/** What could never start or be read is refused when it is said, and not with each delivery. */
export function* setTrigger(
  _tx: Tx,
  { name, kind, spec, by }: NewTrigger,
  { catalog }: PlanContext,
): Answered {
  const follow = nothing()
  const missing = spec.rules.find(({ workflow }) => !definitionOf(catalog, workflow))
  const fault =
    specFault(kind, spec) ??
    (missing
      ? refuse(
          'unknown_workflow',
          `no executor has registered a workflow named ${missing.workflow}, which the trigger starts; start one first`,
          { workflow: missing.workflow },
        )
      : null)
  if (fault) return { answer: fault, follow }
  yield* finish(putTrigger(name, kind, JSON.stringify(spec), by))
  return { answer: { ok: true, name }, follow }
}

export function* pauseTrigger(_tx: Tx, name: string, by: string, why: string | null): Answered {
  const [paused, [known]] = yield* finish(pauseTriggerRow(name, by, why), triggerByName(name))
  const done = paused.length > 0 || known !== undefined
  return { answer: done ? { ok: true, name } : noTrigger(name), follow: nothing() }
}

export function* resumeTrigger(_tx: Tx, name: string): Answered {
  const [[resumed], [known]] = yield* finish(resumeTriggerRow(name), triggerByName(name))
  const no = known
    ? refuse('not_paused', `the trigger ${name} is not paused`, { name })
    : noTrigger(name)
  return { answer: resumed ? { ok: true, name } : no, follow: nothing() }
}

/** Takes a trigger away; what it has started goes on. */
export function* removeTrigger(_tx: Tx, name: string): Answered {
  const [[removed]] = yield* ask(removeTriggerRow(name))
  return { answer: removed ? { ok: true, name } : noTrigger(name), follow: nothing() }
}
