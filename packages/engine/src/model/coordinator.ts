// The single owner of an executor's slots, jobs and markers, as a state machine without a clock or a wire: what it is told
// in one turn is decided in that turn. A reservation is made before a claim and given back in the turn that hears of the
// answer; a job has its slot until all that it began has settled; a marker keeps the slot of a job that left something
// behind.
//
// What must hold here:
// 1. In each class `used` is the count of its jobs and markers, and `reserved` what open reservations have left in it.
// 2. A slot is freed once: with its job, or never while a marker has it.
// 3. Where something could not be released, nothing is admitted until that is cleared.
import { Defect, LeaseholdError } from '../kernel/errors.ts'
import { isSettled, makeJob, settleJob } from './job.ts'
import type { Job } from './job.ts'

/** Why a slot stays held by a job that is gone. */
export const markerKinds = [
  'start_not_saved',
  'result_not_saved',
  'preparation_not_removed',
  'unreleased',
] as const
export type MarkerKind = (typeof markerKinds)[number]

export interface Marker {
  readonly kind: MarkerKind
  readonly run: string
  readonly attempt: number
  readonly slotClass: string
  readonly since: number
  /** What could not be settled, for people. */
  readonly note: string
}

/** A reservation: room for `most` runs, whichever of the classes they fall into. */
export interface Room {
  readonly classes: readonly string[]
  readonly most: number
  /** Whether some class has no room, so that its runs must not be claimed. */
  readonly partial: boolean
}

export interface SlotCount {
  readonly class: string
  readonly limit: number
  readonly used: number
  readonly reserved: number
}

export interface Coordinator<J extends Job = Job> {
  /** Makes the class, with the limit of a class that nobody has set. */
  ensure(slotClass: string): void
  setLimit(slotClass: string, limit: number): void
  capacity(): number
  /** Whether a class that `room` left out has room now. */
  hasMoreThan(room: Room): boolean
  /** Whether runs are driven in all of its slots; one that a claim has reserved is there for whoever waits. */
  isFull(slotClass: string): boolean
  /** Whether something could not be released, so that nothing new is taken. */
  readonly failedClosed: boolean
  /** Room for a claim; null where there is none, or nothing is admitted. */
  reserve(): Room | null
  /** A run of the claim takes its slot out of the reservation. */
  admit(room: Room, run: string, attempt: number, slotClass: string, since: number): J
  /** Gives back what the claim did not use; once. */
  release(room: Room): void
  /** The job of this attempt, unless it has left. */
  holding(run: string, attempt: number): J | undefined
  /** The latest job of this run, left or not. */
  latest(run: string): J | undefined
  readonly jobs: ReadonlySet<J>
  readonly markers: readonly Marker[]
  /** Runs that have a job or marker here and are not to be given again. */
  except(): string[]
  /** Removes a job whose work has settled. With a marker its slot stays held, and is never free in between. */
  settle(job: J, marker?: { readonly kind: MarkerKind; readonly note: string; at: number }): void
  /** A marker of a job that an earlier life of this executor had: it takes a slot, as the job would have kept it. */
  hold(marker: Marker): void
  /** Lets go of the markers of a run that an operator has seen to; how many there were. */
  clear(run: string): number
  slots(): SlotCount[]
}

const CLASS_DEFAULT = 10

interface SlotClass {
  limit: number
  used: number
  reserved: number
}

const roomIn = ({ limit, used, reserved }: SlotClass): number =>
  Math.max(0, limit - used - reserved)

const mustCount = (slotClass: string, limit: number): number => {
  if (!Number.isInteger(limit) || limit < 0)
    throw new LeaseholdError(
      'invalid_config',
      `slots of class ${slotClass} are ${limit}; expected a whole number of 0 or more`,
    )
  return limit
}

/** `extend` adds to a job what its shell drives it with. */
export const makeCoordinator = <J extends Job = Job>(
  limits: Readonly<Record<string, number>>,
  extend: (job: Job) => J = (job) => job as J,
): Coordinator<J> => {
  const classes = new Map<string, SlotClass>()
  const jobs = new Set<J>()
  const latest = new Map<string, J>()
  const rooms = new Map<Room, Map<string, number>>()
  let markers: readonly Marker[] = []

  for (const [slotClass, limit] of Object.entries(limits))
    classes.set(slotClass, { limit: mustCount(slotClass, limit), used: 0, reserved: 0 })
  const of = (slotClass: string): SlotClass => {
    const found = classes.get(slotClass)
    if (found) return found
    const made = { limit: CLASS_DEFAULT, used: 0, reserved: 0 }
    classes.set(slotClass, made)
    return made
  }
  const isClosed = (): boolean => markers.some(({ kind }) => kind === 'unreleased')

  return {
    ensure: (slotClass) => void of(slotClass),
    setLimit: (slotClass, limit) => void (of(slotClass).limit = mustCount(slotClass, limit)),
    capacity: () => [...classes.values()].reduce((sum, { limit }) => sum + limit, 0),
    hasMoreThan: (room) =>
      [...classes].some(([name, each]) => !room.classes.includes(name) && roomIn(each) > 0),
    isFull(slotClass) {
      const { used, limit } = of(slotClass)
      return used >= limit
    },
    get failedClosed() {
      return isClosed()
    },
    reserve() {
      if (isClosed()) return null
      const open = [...classes].filter(([, each]) => roomIn(each) > 0)
      if (open.length === 0) return null
      const most = Math.min(...open.map(([, each]) => roomIn(each)))
      for (const [, each] of open) each.reserved += most
      const room = {
        classes: open.map(([name]) => name),
        most,
        partial: open.length < classes.size,
      }
      rooms.set(room, new Map(room.classes.map((name) => [name, most])))
      return room
    },
    admit(room, run, attempt, slotClass, since) {
      const rest = rooms.get(room)
      if (!rest) throw new Defect(`${run}#${attempt} is admitted by a reservation that is over`)
      const left = rest.get(slotClass) ?? 0
      const slots = of(slotClass)
      // a run of a class that was not asked for is driven all the same: it is held, and somebody must
      if (left > 0) {
        rest.set(slotClass, left - 1)
        slots.reserved -= 1
      }
      slots.used += 1
      const job = extend(makeJob(run, attempt, slotClass, since))
      jobs.add(job)
      latest.set(run, job)
      return job
    },
    release(room) {
      const rest = rooms.get(room)
      if (!rest) throw new Defect('a reservation is given back twice')
      rooms.delete(room)
      for (const [name, left] of rest) of(name).reserved -= left
    },
    holding(run, attempt) {
      const job = latest.get(run)
      return job && job.attempt === attempt && !job.left ? job : undefined
    },
    latest: (run) => latest.get(run),
    jobs,
    get markers() {
      return markers
    },
    except() {
      const runs: string[] = []
      for (const job of jobs) if (job.left || job.bodies > 0) runs.push(job.run)
      for (const marker of markers) runs.push(marker.run)
      return runs
    },
    settle(job, marker) {
      if (!jobs.has(job) || !isSettled(job))
        throw new Defect(
          `${job.run}#${job.attempt} is ${jobs.has(job) ? 'still at work' : 'gone already'} and was to give its slot back`,
        )
      const { run, attempt, slotClass } = job
      // the marker stands before the job goes: the slot passes from one to the other
      if (marker)
        markers = [
          ...markers,
          { kind: marker.kind, run, attempt, slotClass, since: marker.at, note: marker.note },
        ]
      settleJob(job)
      jobs.delete(job)
      if (latest.get(run) === job) latest.delete(run)
      if (!marker) of(slotClass).used -= 1
    },
    hold(marker) {
      markers = [...markers, marker]
      of(marker.slotClass).used += 1
    },
    clear(run) {
      const gone = markers.filter((each) => each.run === run)
      markers = markers.filter((each) => each.run !== run)
      for (const { slotClass } of gone) of(slotClass).used -= 1
      return gone.length
    },
    slots: () =>
      [...classes].map(([name, { limit, used, reserved }]) => ({
        class: name,
        limit,
        used,
        reserved,
      })),
  }
}
