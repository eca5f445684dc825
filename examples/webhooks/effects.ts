// What the steps do to the world, on paper: one line for each effect, appended in one write, so that anyone can count
// afterwards how often each step really happened, and where.
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { StepArgument } from 'leasehold'

/** Where this process writes. */
export const folder = path.resolve(process.env['WEBHOOKS_FOLDER'] ?? '.leasehold/webhooks')

const logOf = (place: string): string => path.join(place, 'effects.log')

export interface Effect {
  /** Run and step: the same for every try. */
  readonly key: string
  readonly pid: number
  readonly attempt: number
  readonly tryNumber: number
}

/** Called in a step when it has done what it is for. */
export const tookEffect = ({ idempotencyKey, fence, tryNumber }: StepArgument): void => {
  const effect: Effect = {
    key: idempotencyKey,
    pid: process.pid,
    attempt: fence.attempt,
    tryNumber,
  }
  mkdirSync(folder, { recursive: true })
  appendFileSync(logOf(folder), `${JSON.stringify(effect)}\n`)
}

/** All effects by key, in the order in which they happened. */
export const readEffects = (place: string): Map<string, Effect[]> => {
  const found = new Map<string, Effect[]>()
  for (const line of readFileSync(logOf(place), 'utf8').split('\n')) {
    if (line === '') continue
    const effect = JSON.parse(line) as Effect
    found.set(effect.key, [...(found.get(effect.key) ?? []), effect])
  }
  return found
}
