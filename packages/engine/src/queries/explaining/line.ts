// What is to be said of a run in line, for an executor or for a slot: who serves it, what is paused, what is full, who is ahead.
import { utc as at } from '../../kernel/time.ts'
import { parseLane, unservedBecause } from '../../model/lane.ts'
import type { Run } from '../../model/run.ts'
import { COUNT_MAX } from '../../store/count-max.ts'
import type { SlotRow } from '../../store/tables/lines.ts'
import { valueInForce } from '../../store/tables/lines.ts'
import type { SessionRow } from '../../store/tables/sessions.ts'
import { servesOf } from '../../store/tables/sessions.ts'
import type { Condition, Facts } from './facts.ts'
import { hasRoom, unitsOf } from './facts.ts'

/** A run that can be claimed. */
export const queued = (facts: Facts): Condition[] => {
  const { run, live, aheadInLane: ahead } = facts
  const unserved = noExecutor(run, live)
  const suspect: Condition[] =
    run.suspectSince === null
      ? []
      : [
          {
            code: 'lost_twice',
            sentence: `its last ${run.losses} attempts were lost without a new entry, so only an executor that holds nothing else may claim it`,
            since: run.suspectSince,
            evidence: { losses: run.losses },
          },
        ]
  const count = ahead >= COUNT_MAX ? `more than ${COUNT_MAX - 1}` : String(ahead)
  return [
    ...linePauses(facts),
    ...(unserved === null ? [] : [unserved]),
    ...suspect,
    {
      code: 'queued',
      sentence: `it can be claimed now; ${count} ${ahead === 1 ? 'run is' : 'runs are'} ahead of it in its lane`,
      since: run.attempt === 0 ? run.createdAt : null,
      evidence: { lane: run.lane, ahead: Math.min(ahead, COUNT_MAX - 1), rank: run.rank },
    },
  ]
}

const linePauses = ({ run, pauses }: Facts): Condition[] =>
  pauses
    .filter(({ kind, name }) => name === (kind === 'queue' ? run.queue : run.workflow))
    .map((pause) => ({
      code: `${pause.kind}_paused`,
      sentence: `the ${pause.kind} ${pause.name} is paused by ${pause.paused_by} since ${at(pause.paused_at)}${pause.until === null ? '' : ` until ${at(pause.until)}`}${pause.why === null ? '' : `: ${pause.why}`}`,
      since: pause.paused_at,
      evidence: { kind: pause.kind, name: pause.name, by: pause.paused_by, until: pause.until },
    }))

const noExecutor = (run: Run, live: readonly SessionRow[]): Condition | null => {
  const because = unservedBecause(live.map(servesOf), parseLane(run.lane))
  return because === null
    ? null
    : {
        code: 'no_executor',
        sentence: `${because}; start one that does`,
        since: null,
        evidence: {
          queue: run.queue,
          workflow: run.workflow,
          version: run.version,
          labels: run.labels,
          liveExecutors: live.length,
        },
      }
}

/** A run that waits for its slots, or for the instant at which it may. */
export const forSlot = (facts: Facts): Condition[] => {
  const { run, now, live, slots } = facts
  if (run.readyAt !== null && run.readyAt > now)
    return [
      {
        code: 'delayed',
        sentence: `it starts at ${at(run.readyAt)} and not before`,
        since: run.createdAt,
        evidence: { until: run.readyAt },
      },
    ]
  if (run.reason === 'no_executor') {
    const still = noExecutor(run, live)
    return [
      still ?? {
        code: 'no_executor',
        sentence: 'an executor serves it now; it gets in line at the next look',
        since: null,
        evidence: { note: run.note, liveExecutors: live.length },
      },
    ]
  }
  const full = slots.filter((slot) => !hasRoom(slot, run)).map((slot) => limitFull(slot, facts))
  const inLine = slots
    .filter((slot) => hasRoom(slot, run))
    .map((slot): Condition => ({
      code: 'in_line',
      sentence: `it is number ${slot.ahead + 1} in line for ${slot.key}, which has room (${slot.used} of ${valueInForce(slot) ?? 'any number'} held)`,
      since: null,
      evidence: {
        limit: slot.key,
        value: valueInForce(slot),
        used: slot.used,
        place: slot.ahead + 1,
      },
    }))
  const about: Condition = {
    code: 'admission',
    sentence: 'its slots are free; admission looks at it within a second',
    since: null,
    evidence: { limits: slots.map((slot) => slot.key) },
  }
  return [...full, ...linePauses(facts), ...(full.length === 0 ? [about] : []), ...inLine]
}

const limitFull = (
  slot: SlotRow & { readonly ahead: number },
  { run, holders }: Facts,
): Condition => {
  const list = holders.get(slot.key) ?? []
  const value = valueInForce(slot)
  const shown = list.slice(0, 3).map((each) => `${each.id} (${each.status})`)
  const others = list.length > 3 ? ' and others' : ''
  const units = unitsOf(run, slot.key)
  const by = value === 0 ? 'its value is 0' : `held by ${shown.join(', ')}${others}`
  return {
    code: 'limit_full',
    sentence: `the limit ${slot.key} is full (${slot.used} of ${value} held${units > 1 ? `, it needs ${units}` : ''}): ${by}; it is number ${slot.ahead + 1} in line`,
    since: null,
    evidence: {
      limit: slot.key,
      value,
      used: slot.used,
      units,
      place: slot.ahead + 1,
      holders: list.map((each) => ({
        run: each.id,
        status: each.status,
        session: each.session,
        since: each.leased_at ?? each.created_at,
      })),
    },
  }
}
