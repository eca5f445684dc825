// What must be true when all deliveries have been triaged, whatever was stopped or killed in between.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { Client, RunDetail } from 'leasehold/client'
import { readEffects } from './effects.ts'

export interface Checked {
  readonly details: readonly RunDetail[]
  readonly effects: number
  /** Effects that happened once more since their executor lost the run before it could record them. */
  readonly repeated: number
  /** What is not as it should be, as sentences; empty when all is well. */
  readonly wrong: readonly string[]
}

interface Expected {
  readonly client: Client
  readonly runs: readonly string[]
  /** Where the executors wrote. */
  readonly folder: string
}

export const checkAll = async ({ client, runs, folder }: Expected): Promise<Checked> => {
  const parents = await inParts(runs, (id) => client.get(id))
  const children = await inParts(
    parents.flatMap((parent) => parent.children.map(({ id }) => id)),
    (id) => client.get(id),
  )
  const details = [...parents, ...children]
  const wrong = [
    ...details.flatMap(endedOnce),
    ...parents.flatMap((parent) =>
      parent.children.length === 1
        ? []
        : [`${parent.run.id} has ${parent.children.length} children; it starts one`],
    ),
    ...parents.flatMap((parent) => reported(parent, folder)),
  ]
  const effects = readEffects(folder)
  const recorded = new Set<string>()
  let repeated = 0
  for (const { run, journal, attempts } of details) {
    const lost = new Set(attempts.filter(wasLost).map(({ attempt }) => attempt))
    for (const { kind, key: step } of journal) {
      if (kind !== 'step') continue
      const key = `${run.id}:${step}`
      recorded.add(key)
      const lines = effects.get(key) ?? []
      const early = lines.slice(0, -1)
      repeated += early.length
      if (lines.length === 0) wrong.push(`${key} is recorded and never took effect`)
      if (!early.every(({ attempt }) => lost.has(attempt)))
        wrong.push(
          `${key} took effect ${lines.length} times, in the attempts ${lines.map(({ attempt }) => attempt).join(', ')}`,
        )
    }
  }
  for (const key of effects.keys())
    if (!recorded.has(key)) wrong.push(`${key} took effect and is not recorded`)
  const { invariants } = await client.audit()
  for (const { name, figure } of invariants)
    if (figure > 0) wrong.push(`the audit finds ${figure} that break ${name}`)
  return { details, effects: [...effects.values()].flat().length, repeated, wrong }
}

/** Its executor was killed, or could not renew its lease: what it was just doing may have happened and not be recorded. */
const wasLost = ({ end, reason }: RunDetail['attempts'][number]): boolean =>
  end === 'lost' || end === 'expired' || reason === 'lease_lost'

const endedOnce = ({ run, attempts, journalNext }: RunDetail): string[] => {
  const ends = attempts.filter(({ end }) => end === 'completed')
  return [
    ...(run.status === 'succeeded'
      ? []
      : [`${run.id} is ${run.status}: ${run.note ?? run.reason ?? 'no note'}`]),
    ...(ends.length === 1 ? [] : [`${run.id} has ${ends.length} attempts that completed it`]),
    ...(journalNext === null ? [] : [`${run.id} has more entries than one page`]),
  ]
}

const reported = ({ run }: RunDetail, folder: string): string[] => {
  const file = path.join(folder, 'reports', `${run.id}.json`)
  if (!existsSync(file)) return [`${run.id} has written no report`]
  try {
    JSON.parse(readFileSync(file, 'utf8'))
    return []
  } catch {
    return [`the report of ${run.id} is not whole`]
  }
}

/** A few at a time. */
const inParts = async <T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<R[]> => {
  const answers: R[] = []
  for (let i = 0; i < items.length; i += 8)
    answers.push(...(await Promise.all(items.slice(i, i + 8).map(ask))))
  return answers
}
