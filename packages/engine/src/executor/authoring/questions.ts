// What a run asks of others and waits for: signals, and decisions of people.
import type { Duration } from '../../kernel/duration.ts'
import { milliseconds } from '../../kernel/duration.ts'
import { LeaseholdError } from '../../kernel/errors.ts'
import { shown } from '../../kernel/json.ts'
import type { MembersOf } from '../../kernel/known-members.ts'
import { mustKnowMembers } from '../../kernel/known-members.ts'
import { mustName } from '../../model/definition.ts'
import { plainCodec } from './codec.ts'
import type { ApprovalOptions, Decision, SignalResult } from './context.ts'
import { mustKeep } from './names.ts'
import { payloadOf } from './payload.ts'
import type { Schema } from './schema.ts'
import { checkedFor } from './schema.ts'
import type { Scope } from './scope.ts'

const SIGNAL_OPTIONS = { as: true, timeout: true, schema: true } as const
const APPROVAL_OPTIONS: MembersOf<ApprovalOptions> = {
  prompt: true,
  data: true,
  deciders: true,
  deadline: true,
}

/** The signal itself, or with a time-out whether it or the time came first. */
export const takeSignal = async <T>(
  scope: Scope,
  name: string,
  options: { as?: string; timeout?: Duration; schema?: Schema<unknown, T> },
): Promise<T | SignalResult<T>> => {
  mustKnowMembers(options, SIGNAL_OPTIONS, `the signal ${shown(name)}`, 'invalid_request')
  mustName(name, 'the name of a signal')
  const ms =
    options.timeout === undefined
      ? undefined
      : milliseconds(options.timeout, `timeout of the signal ${name}`)
  const key = scope.keyFor(options.as ?? name, 'signal')
  const received = await scope.waitFor(key, 'signal', () => ({
    key,
    kind: 'signal',
    name,
    ...(ms === undefined ? {} : { dueInMs: ms }),
  }))
  const { came, value } = scope.valueOf<{ came: boolean; value?: unknown }>(received)
  const typed = came
    ? await checkedFor(
        scope.env.driver,
        options.schema,
        scope.revived(value),
        `the signal ${name}`,
        'invalid_input',
      )
    : undefined
  if (ms === undefined) return typed as T
  return came ? { ok: true, value: typed as T } : { ok: false, timedOut: true }
}

export const askPeople = async <T>(
  scope: Scope,
  name: string,
  options: ApprovalOptions,
): Promise<Decision<T>> => {
  mustKnowMembers(options, APPROVAL_OPTIONS, `the approval ${shown(name)}`, 'invalid_request')
  mustAsk(name, options)
  // without one the server's own setting holds
  const deadline =
    options.deadline === undefined
      ? {}
      : { dueInMs: milliseconds(options.deadline, `deadline of the approval ${name}`) }
  const data = payloadOf(
    plainCodec,
    options.data,
    scope.env.payloadMaxBytes,
    `the data of the approval ${name}`,
  )
  const key = scope.keyFor(name, 'approval')
  const received = await scope.waitFor(key, 'approval', () => ({
    key,
    kind: 'approval',
    ...deadline,
    approval: { prompt: options.prompt, data, deciders: [...(options.deciders ?? [])] },
  }))
  const { came, value } = scope.valueOf<{ came: boolean; value?: unknown }>(received)
  return (came ? value : { decision: 'lapsed' }) as Decision<T>
}

/** Who may decide is never guessed: a text in place of a list would let in everybody whose name is a part of it. */
const mustAsk = (name: string, { prompt, deciders = [] }: ApprovalOptions): void => {
  if (typeof prompt !== 'string')
    throw new LeaseholdError(
      'invalid_request',
      `the prompt of the approval ${name} is ${shown(prompt)}; expected a text`,
    )
  if (!Array.isArray(deciders))
    throw new LeaseholdError(
      'invalid_request',
      `the deciders of the approval ${name} are ${shown(deciders)}; expected a list of names`,
    )
  for (const decider of deciders) mustKeep(decider, `a decider of the approval ${name}`)
}
