// What several databases answer to one question, put together: figures add up, ages are the oldest, and a list is one list in its
// own order. Pure.
import { byBytes } from '../../kernel/byte-order.ts'
import type { Family } from '../../kernel/meters.ts'
import type { RunPage } from '../../queries/run-list.ts'
import type { AnswerOf } from '../../protocol/route.ts'
import type { RouteName, Routes } from '../../protocol/routes.ts'

type Answer<N extends RouteName> = AnswerOf<Routes[N]>
type Merge<N extends RouteName> = (answers: readonly Answer<N>[]) => Answer<N>

const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0)
const least = (values: readonly (number | null)[]): number | null => {
  const known = values.filter((each) => each !== null)
  return known.length === 0 ? null : Math.min(...known)
}
const nowOf = (answers: readonly { readonly now: number }[]): number => answers[0]?.now ?? 0

/** Those of one name together, in the order in which the names came. */
const groups = <T>(all: readonly T[], nameOf: (each: T) => string): (readonly [T, ...T[]])[] => {
  const byName = new Map<string, [T, ...T[]]>()
  for (const each of all) {
    const found = byName.get(nameOf(each))
    if (found) found.push(each)
    else byName.set(nameOf(each), [each])
  }
  return [...byName.values()]
}

type Compare<T> = (a: T, b: T) => number
const by =
  <T>(key: (each: T) => string | number): Compare<T> =>
  (a, b) =>
    key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0

/** Pages of the list of runs; a shard has shown all that is not below its next place. */
export const mergeRunPages = (pages: readonly RunPage[], limit: number): RunPage => {
  const known = pages.reduce<string | null>(
    (most, { next }) => (next !== null && (most === null || byBytes(next, most) > 0) ? next : most),
    null,
  )
  const runs = pages
    .flatMap((page) => page.runs)
    .filter(({ id }) => known === null || byBytes(id, known) >= 0)
    .sort((a, b) => byBytes(b.id, a.id))
  const page = runs.slice(0, limit)
  return { runs: page, next: runs.length > limit ? (page.at(-1)?.id ?? known) : known }
}

/** A page of what each shard has from one place on, with the place behind it; null where there is no more. */
export const mergePages = <T>(
  pages: readonly { readonly items: readonly T[]; readonly more: boolean }[],
  limit: number,
  order: Compare<T>,
  placeOf: (item: T) => string,
): { readonly items: readonly T[]; readonly next: string | null } => {
  const all = pages.flatMap(({ items }) => items).sort(order)
  const items = all.slice(0, limit)
  const last = items.at(-1)
  const more = all.length > limit || pages.some((page) => page.more)
  return { items, next: more && last !== undefined ? placeOf(last) : null }
}

export const mergeCounts: Merge<'countRuns'> = (answers) => ({
  counts: groups(
    answers.flatMap(({ counts }) => counts),
    ({ status }) => status,
  ).map(([first, ...rest]) => ({
    status: first.status,
    count: sum([first, ...rest].map(({ count }) => count)),
    more: [first, ...rest].some(({ more }) => more),
  })),
})

/** A session of one name is on each shard; it lives as long as it does on all. */
export const mergeExecutors: Merge<'listExecutors'> = (answers) => ({
  now: nowOf(answers),
  executors: groups(
    answers.flatMap(({ executors }) => executors),
    ({ id }) => id,
  ).map((all) => {
    const over = all.find(({ state }) => state !== 'live') ?? all[0]
    return {
      ...over,
      held: sum(all.map(({ held }) => held)),
      lanes: [...new Set(all.flatMap(({ lanes }) => lanes))].sort(),
      leaseUntil: least(all.map(({ leaseUntil }) => leaseUntil)),
      renewedAt: Math.min(...all.map(({ renewedAt }) => renewedAt)),
    }
  }),
})

type Slot = Answer<'listSlots'>['slots'][number]
const together = (values: readonly (number | null)[]): number | null =>
  values.some((each) => each === null) ? null : sum(values.map((each) => each ?? 0))

/** Shares add up to the limit; of a shard that has not heard of it nothing is known. */
const slotOf = (all: readonly [Slot, ...Slot[]]): Slot => ({
  ...all[0],
  value: together(all.map(({ value }) => value)),
  codeValue: together(all.map(({ codeValue }) => codeValue)),
  operatorValue: together(all.map(({ operatorValue }) => operatorValue)),
  used: sum(all.map(({ used }) => used)),
  waiters: sum(all.map(({ waiters }) => waiters)),
  waitersMore: all.some(({ waitersMore }) => waitersMore),
})

export const mergeSlots: Merge<'listSlots'> = (answers) => ({
  slots: groups(
    answers.flatMap(({ slots }) => slots),
    ({ key }) => key,
  )
    .map(slotOf)
    .sort(by(({ key }) => key)),
})

export const mergeSlot = (
  answers: readonly [Answer<'getSlot'>, ...Answer<'getSlot'>[]],
): Answer<'getSlot'> => {
  const [first, ...rest] = answers
  return {
    slot: slotOf([first.slot, ...rest.map(({ slot }) => slot)]),
    holders: answers.flatMap(({ holders }) => holders).sort(by(({ since }) => since)),
    // a place is one of its shard’s line
    line: answers
      .flatMap(({ line }) => line)
      .sort((a, b) => a.place - b.place || by<typeof a>(({ since }) => since)(a, b)),
  }
}

type Queue = Answer<'listQueues'>['queues'][number]

const queueOf = (all: readonly [Queue, ...Queue[]]): Queue => {
  const [first] = all
  const capacity = Math.max(...all.map((each) => each.capacity))
  return {
    queue: first.queue,
    depth: sum(all.map(({ depth }) => depth)),
    more: all.some(({ more }) => more),
    oldestAt: least(all.map(({ oldestAt }) => oldestAt)),
    waiting: sum(all.map(({ waiting }) => waiting)),
    oldestWaitMs: Math.max(...all.map(({ oldestWaitMs }) => oldestWaitMs)),
    held: sum(all.map(({ held }) => held)),
    wanted: sum(all.map(({ wanted }) => wanted)),
    // the same executors serve the queue on each shard, and what they hold on one is free on none
    executors: Math.max(...all.map(({ executors }) => executors)),
    capacity,
    free: Math.max(0, sum(all.map(({ free, capacity: of }) => free - of)) + capacity),
    paused: all.find(({ paused }) => paused !== null)?.paused ?? null,
    lanes: groups(
      all.flatMap(({ lanes }) => lanes),
      ({ lane }) => lane,
    ).map((lanes) => ({
      ...lanes[0],
      depth: sum(lanes.map(({ depth }) => depth)),
      more: lanes.some(({ more }) => more),
      oldestAt: least(lanes.map(({ oldestAt }) => oldestAt)),
      parked: sum(lanes.map(({ parked }) => parked)),
      served: lanes.some(({ served }) => served),
      paused: lanes.find(({ paused }) => paused !== null)?.paused ?? null,
    })),
  }
}

export const mergeQueues: Merge<'listQueues'> = (answers) => ({
  now: nowOf(answers),
  queues: groups(
    answers.flatMap(({ queues }) => queues),
    ({ queue }) => queue,
  )
    .map(queueOf)
    .sort(by(({ queue }) => queue)),
})

export const mergeQueue = (
  answers: readonly [Answer<'getQueue'>, ...Answer<'getQueue'>[]],
): Answer<'getQueue'> => ({ ...queueOf(answers), now: nowOf(answers) })

export const mergePauses: Merge<'listPauses'> = (answers) => ({
  pauses: groups(
    answers.flatMap(({ pauses }) => pauses),
    ({ kind, name }) => `${kind} ${name}`,
  ).map(([first]) => first),
})

export const mergeWorkflows: Merge<'listWorkflows'> = (answers) => ({
  workflows: groups(
    answers.flatMap(({ workflows }) => workflows),
    ({ name }) => name,
  )
    .map((all) => ({
      ...all[0],
      versions: groups(
        all.flatMap(({ versions }) => versions),
        ({ version }) => version,
      ).map((each) => ({ ...each[0], served: each.some(({ served }) => served) })),
      paused: all.find(({ paused }) => paused !== null)?.paused ?? null,
    }))
    .sort(by(({ name }) => name)),
})

export const mergeOrders: Merge<'listOrders'> = (answers) => ({
  orders: answers.flatMap(({ orders }) => orders).sort(by(({ setAsideAt }) => setAsideAt)),
  open: sum(answers.map(({ open }) => open)),
  oldestMs: Math.max(...answers.map(({ oldestMs }) => oldestMs)),
  late: answers.some(({ late }) => late),
})

/** A sweep is as late as it is on the shard where it is latest. */
export const mergeSweeps: Merge<'listSweeps'> = (answers) => ({
  now: nowOf(answers),
  sweeps: groups(
    answers.flatMap(({ sweeps }) => sweeps),
    ({ name }) => name,
  ).map((all) => ({
    ...all[0],
    lastAt: Math.min(...all.map(({ lastAt }) => lastAt)),
    examined: sum(all.map(({ examined }) => examined)),
    acted: sum(all.map(({ acted }) => acted)),
    skipped: sum(all.map(({ skipped }) => skipped)),
    error: all.find(({ error }) => error !== null)?.error ?? null,
    durationMs: Math.max(...all.map(({ durationMs }) => durationMs)),
    late: all.some(({ late }) => late),
    lateByMs: Math.max(...all.map(({ lateByMs }) => lateByMs)),
  })),
})

export const mergeSinks: Merge<'listSinks'> = (answers) => ({
  now: nowOf(answers),
  sinks: groups(
    answers.flatMap(({ sinks }) => sinks),
    ({ name }) => name,
  )
    .map((all) => ({
      ...all[0],
      seenAt: least(all.map(({ seenAt }) => seenAt)),
      gone: all.some(({ gone }) => gone),
      open: sum(all.map(({ open }) => open)),
      dead: sum(all.map(({ dead }) => dead)),
      oldestAt: least(all.map(({ oldestAt }) => oldestAt)),
      ageMs: Math.max(...all.map(({ ageMs }) => ageMs)),
      late: all.some(({ late }) => late),
    }))
    .sort(by(({ name }) => name)),
})

export const mergeSchedules: Merge<'listSchedules'> = (answers) => ({
  now: nowOf(answers),
  schedules: answers.flatMap(({ schedules }) => schedules).sort(by(({ name }) => name)),
})

const DELIVERIES_SHOWN = 50

export const mergeTrigger = (
  answers: readonly [Answer<'getTrigger'>, ...Answer<'getTrigger'>[]],
): Answer<'getTrigger'> => ({
  ...answers[0],
  deliveries: answers
    .flatMap(({ deliveries }) => deliveries)
    .sort((a, b) => b.at - a.at)
    .slice(0, DELIVERIES_SHOWN),
})

type Invariant = Answer<'audit'>['invariants'][number]
const SHOWN = 10

export const mergeInvariants = (all: readonly Invariant[]): Invariant[] =>
  groups(all, ({ name }) => name).map((each) => ({
    ...each[0],
    figure: sum(each.map(({ figure }) => figure)),
    sample: each.flatMap(({ sample }) => sample).slice(0, SHOWN),
  }))

/** Each shard’s figures under a label of its own: whoever wants their sum, or the worst of them, asks for that. */
export const mergeFamilies = (shards: readonly (readonly Family[])[]): Family[] => {
  const labelled = shards.flatMap((families, shard) =>
    families.map((family) => ({
      ...family,
      samples: family.samples.map((sample) => ({
        ...sample,
        labels: { shard: String(shard), ...sample.labels },
      })),
    })),
  )
  return groups(labelled, ({ name }) => name).map((all) => ({
    ...all[0],
    samples: all.flatMap(({ samples }) => samples),
  }))
}
