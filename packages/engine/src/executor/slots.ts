// Executor slots in memory: by class, with limits that can change while running. A reservation is made in the turn that
// decides to claim, and given back in the turn that hears of the answer.
import { LeaseholdError } from '../kernel/errors.ts'

export interface Room {
  readonly classes: readonly string[]
  /** Runs that fit whichever of the classes they fall into. */
  readonly most: number
  /** Whether some class has no room, so that its runs must not be claimed. */
  readonly partial: boolean
}

export interface Slots {
  ensure(slotClass: string): void
  capacity(): number
  /** Room that is neither used nor reserved for a claim under way. */
  free(slotClass: string): number
  /** Whether runs are driven in all of its slots; one that a claim has reserved is there for whoever waits. */
  full(slotClass: string): boolean
  reserve(): Room | null
  release(room: Room): void
  take(slotClass: string): void
  put(slotClass: string): void
  set(slotClass: string, limit: number): void
  status(): { class: string; limit: number; used: number; reserved: number }[]
}

const CLASS_DEFAULT = 10

export const makeSlots = (limits: Readonly<Record<string, number>>): Slots => {
  const classes = new Map<string, { limit: number; used: number; reserved: number }>()
  const valid = (slotClass: string, limit: number): number => {
    if (!Number.isInteger(limit) || limit < 0)
      throw new LeaseholdError(
        'invalid_config',
        `slots of class ${slotClass} are ${limit}; expected a whole number of 0 or more`,
      )
    return limit
  }
  for (const [slotClass, limit] of Object.entries(limits))
    classes.set(slotClass, { limit: valid(slotClass, limit), used: 0, reserved: 0 })
  const of = (slotClass: string) => {
    const found = classes.get(slotClass)
    if (found) return found
    const made = { limit: CLASS_DEFAULT, used: 0, reserved: 0 }
    classes.set(slotClass, made)
    return made
  }
  const room = ({
    limit,
    used,
    reserved,
  }: {
    limit: number
    used: number
    reserved: number
  }): number => Math.max(0, limit - used - reserved)
  return {
    ensure: (slotClass) => void of(slotClass),
    capacity: () => [...classes.values()].reduce((sum, { limit }) => sum + limit, 0),
    free: (slotClass) => room(of(slotClass)),
    full(slotClass) {
      const { used, limit } = of(slotClass)
      return used >= limit
    },
    reserve() {
      const open = [...classes].filter(([, each]) => room(each) > 0)
      if (open.length === 0) return null
      const most = Math.min(...open.map(([, each]) => room(each)))
      for (const [, each] of open) each.reserved += most
      return { classes: open.map(([name]) => name), most, partial: open.length < classes.size }
    },
    release({ classes: names, most }) {
      for (const name of names) of(name).reserved -= most
    },
    take: (slotClass) => void (of(slotClass).used += 1),
    put: (slotClass) => void (of(slotClass).used -= 1),
    set: (slotClass, limit) => void (of(slotClass).limit = valid(slotClass, limit)),
    status: () =>
      [...classes].map(([name, { limit, used, reserved }]) => ({
        class: name,
        limit,
        used,
        reserved,
      })),
  }
}
