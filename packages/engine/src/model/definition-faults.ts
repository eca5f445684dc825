// What is wrong with a definition, in sentences: looked at where it is written and again where it is registered, since a
// limit or a name that nobody can keep would leave its runs to wait for ever, or fail the transaction that starts them.
import { shown } from '../kernel/json.ts'
import { INT_MAX } from '../kernel/numbers.ts'
import type { MembersOf } from '../kernel/known-members.ts'
import { strangeMembers } from '../kernel/known-members.ts'
import type { Definition, LimitDeclaration } from './definition.ts'
import { isName, NAME_EXPECTED } from './definition.ts'
import { retryFaults } from './retry.ts'

/** Empty where it can be kept. It takes what no type allows, as it comes from programs without types. */
export const definitionFaults = ({
  labels,
  limits,
  onEnd,
  slotClass,
  retry,
}: Readonly<Record<keyof Definition, unknown>>): string[] => [
  ...(Array.isArray(labels)
    ? nameFaults(labels.map((label, i): [string, unknown] => [`labels[${i}]`, label]))
    : [`labels are ${shown(labels)}; expected a list of names`]),
  ...(Array.isArray(limits)
    ? limits.flatMap((limit, i) => limitFaults(limit, `limits[${i}]`))
    : [`limits are ${shown(limits)}; expected a list`]),
  ...nameFaults([
    ['slotClass', slotClass],
    ...(onEnd === null ? [] : [['onEnd', onEnd] as [string, unknown]]),
  ]),
  ...(retry === null ? [] : retryFaults(retry, 'retry')),
]

const nameFaults = (names: readonly (readonly [string, unknown])[]): string[] =>
  names.flatMap(([what, name]) =>
    isName(name) ? [] : [`${what} is ${shown(name)}; expected ${NAME_EXPECTED}`],
  )

const LIMIT: MembersOf<LimitDeclaration> = {
  key: true,
  value: true,
  mode: true,
  policy: true,
  units: true,
}

const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= INT_MAX

const limitFaults = (limit: unknown, where: string): string[] => {
  if (typeof limit !== 'object' || limit === null || Array.isArray(limit))
    return [
      `${where} is ${shown(limit)}; expected a limit such as { key: 'customer:{id}', value: 2 }`,
    ]
  const { key, value, mode, policy, units } = limit as Readonly<Record<string, unknown>>
  const isUnits =
    units === undefined || (typeof units === 'string' ? units !== '' : isCount(units) && units >= 1)
  return [
    ...strangeMembers(limit, LIMIT, where),
    ...nameFaults([[`${where}.key`, key]]),
    ...(isCount(value)
      ? []
      : [`${where}.value is ${shown(value)}; expected a whole number of 0 to ${INT_MAX}`]),
    ...(mode === undefined || mode === 'while_held' || mode === 'whole_run'
      ? []
      : [`${where}.mode is ${shown(mode)}; expected while_held or whole_run`]),
    ...(policy === undefined || policy === 'queue' || policy === 'reject'
      ? []
      : [`${where}.policy is ${shown(policy)}; expected queue or reject`]),
    ...(isUnits
      ? []
      : [
          `${where}.units is ${shown(units)}; expected a whole number of 1 to ${INT_MAX}, or the path of one in the input`,
        ]),
  ]
}
