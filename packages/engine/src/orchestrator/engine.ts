// The engine: the store's transitions with their batches, and what follows from each commit. It is what the handler, the
// direct executors and the loops all call. It holds no truth of its own: everything here can be lost at any moment.
import type { AttemptGrant } from '../kernel/attempt-token.ts'
import { attemptToken, provenGrant } from '../kernel/attempt-token.ts'
import { batcher, ItemError } from '../kernel/batcher.ts'
import type { Batcher } from '../kernel/batcher.ts'
import { keyedHash } from '../kernel/digest.ts'
import { Fault, LeaseholdError } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import { readOr, storedObject } from '../kernel/stored.ts'
import { payloadFault } from '../model/apply.ts'
import type { Reading } from '../maintenance/reap-sessions.ts'
import type { Catalog, Definition } from '../model/definition.ts'
import { definitionKey, emptyCatalog } from '../model/definition.ts'
import type { Follow } from '../model/follow.ts'
import { merge } from '../model/follow.ts'
import { keyFault } from '../model/indexed.ts'
import type { RunStatus } from '../model/run.ts'
import type { Settings } from '../model/settings.ts'
import type { Shard } from '../model/shard.ts'
import { ALONE, membershipOf, notThisShard, shardIds } from '../model/shard.ts'
import type { PlanContext, StartCommand } from '../model/start.ts'
import type { WriteAnswer } from '../model/work.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { Manner, Store } from '../store/store.ts'
import { limitsByKey } from '../store/tables/limits.ts'
import { allMeta, MEMBERSHIP, putMetaOnce } from '../store/tables/orders.ts'
import { allDefinitions } from '../store/tables/definitions.ts'
import { allLanes } from '../store/tables/lanes.ts'
import type { HandedOn } from '../transitions/admit.ts'
import { handOn } from '../transitions/admit.ts'
import type { CancelAnswer, CancelCommand } from '../transitions/cancel.ts'
import { cancel } from '../transitions/cancel.ts'
import type { DecideAnswer, DecideCommand } from '../transitions/decide.ts'
import { decide } from '../transitions/decide.ts'
import type { PauseAnswer } from '../transitions/pause.ts'
import { pause, resume } from '../transitions/pause.ts'
import type { RetryAnswer, RetryCommand } from '../transitions/retry.ts'
import { retry } from '../transitions/retry.ts'
import { reversion } from '../transitions/reversion.ts'
import type { SignalAnswer, SignalCommand } from '../transitions/signal.ts'
import { signal } from '../transitions/signal.ts'
import type { StartAnswer, StartItem } from '../transitions/start.ts'
import { knownStarts, start } from '../transitions/start.ts'
import { takeFrom } from '../transitions/take-from.ts'
import type { SessionWrite } from '../transitions/write.ts'
import { write } from '../transitions/write.ts'
import type { Outcome } from '../kernel/outcome.ts'
import type { Hub } from './hub.ts'
import { makeHub } from './hub.ts'
import type { Lanes } from './claims/lanes.ts'
import type { Meters, Purpose } from './meters.ts'
import { makeMeters } from './meters.ts'
import type { Passes, Refusal } from './store-health.ts'
import { makePasses, noted } from './store-health.ts'
import { makeLanes } from './claims/lanes.ts'

/** What a commit may want a loop to look for soon. */
export type Wanted = 'admit' | 'orders' | 'deliveries' | 'wake'

export interface Engine {
  readonly ports: Ports
  readonly settings: Settings
  readonly store: Store
  readonly hub: Hub
  readonly lanes: Lanes
  readonly catalog: Catalog
  /** Which of several databases its store is; `ALONE` where it is the only one. */
  readonly shard: Shard
  /** What the store's clock said when the engine was opened. */
  readonly opened: Reading
  readonly context: PlanContext
  /** What the store's last write was refused for. */
  refusal(): Refusal | null
  readonly passes: Passes
  /** What this process counts as it happens. */
  readonly meters: Meters
  /** Does what a transaction does, and counts how long it took. */
  timed<T>(purpose: Purpose, work: () => Promise<T>): Promise<T>
  /** Tokens for one attempt each, which every server of this store can make and prove. */
  readonly grants: {
    token(grant: AttemptGrant): string
    proven(text: string): AttemptGrant | null
  }
  /** Runs a transition and does what follows from it. */
  act<T extends { readonly follow: Follow }>(
    transition: (tx: Tx, context: PlanContext) => Steps<T>,
    manner?: Manner,
    purpose?: Purpose,
  ): Promise<T>
  read<T>(transition: (tx: Tx) => Steps<T>): Promise<T>
  /** Does what follows from a commit: wakes lanes, admits, applies orders, tells holders and watchers. */
  follow(follow: Follow): void
  /** Called when something wants a loop to look soon, for `wake` at an instant. */
  onWanted(
    hear: (what: Wanted, keys: Follow['admit'], at: number | null) => void,
    /** Where the store can, slots are handed on in the commit that frees them. */
    handsOn?: boolean,
  ): void
  /** Hears all that follows from the commits of this process. */
  onFollowed(hear: (follow: Follow) => void): void
  reload(): Promise<void>
  /** Reads the definitions anew where one of these is not known: another process may have registered it. */
  learn(starts: readonly Pick<StartCommand, 'workflow' | 'version'>[]): Promise<void>
  /** Another process has placed orders: they are looked for soon. */
  ordersCame(): void
  start(item: StartItem): Promise<StartAnswer>
  startMany(items: readonly StartItem[]): Promise<readonly StartAnswer[]>
  write(session: string, item: SessionWrite['write']): Promise<WriteAnswer>
  signal(command: SignalCommand): Promise<SignalAnswer>
  decide(command: DecideCommand): Promise<DecideAnswer>
  cancel(command: CancelCommand): Promise<CancelAnswer>
  pause(run: string, by: string, why: string | null): Promise<PauseAnswer>
  resume(run: string, by: string): Promise<PauseAnswer>
  retry(command: RetryCommand): Promise<RetryAnswer>
  reversion(
    run: string,
    version: string,
    by: string,
  ): Promise<Outcome<{ run: string; version: string }>>
  /** An operator takes a held run from its holder: handed back, claimable at once. */
  takeFrom(
    run: string,
    by: string,
    reason: string,
  ): Promise<Outcome<{ run: string; attempt: number; status: RunStatus }>>
  /** Does what follows an answer without holding it up. A fault is logged under `event`: whoever asked asks again. */
  later(event: string, work: () => Promise<void>): void
  /** Resolves when no batch is collecting or in flight, and what was to be done later is done. */
  idle(): Promise<void>
}

interface Options {
  readonly store: Store
  readonly ports: Ports
  readonly settings: Settings
  /** Which of several databases that are joined as one store. Default: it is a store by itself. */
  readonly shard?: Shard
}

/**
 * Opens the engine on a migrated store: reads its definitions, lanes and keys. Throws `invalid_config` where the store is another
 * shard than `shard`, or is one and is opened alone.
 */
export const openEngine = async ({
  store: given,
  ports: shared,
  settings,
  shard = ALONE,
}: Options): Promise<Engine> => {
  const ports = { ...shared, ids: shardIds(shared.ids, shard) }
  const { store, refusal } = noted(given, ports.time)
  const passes = makePasses(ports.time, given.kind === 'sqlite')
  const hub = makeHub()
  const lanes = makeLanes()
  const meters = makeMeters()
  const doing = new Set<Promise<void>>()
  let catalog: Catalog = emptyCatalog
  let heard: ((what: Wanted, keys: Follow['admit'], at: number | null) => void) | null = null
  let handsOn = false
  let followed: ((follow: Follow) => void) | null = null
  const early = ports.time.mono()
  const { facts, wall } = await store.run(function* (tx) {
    const [kept] = yield* ask(allMeta())
    const no = notThisShard(
      membershipOf(kept.find(({ name }) => name === MEMBERSHIP)?.value),
      shard,
    )
    if (no !== null) throw new LeaseholdError('invalid_config', no, { ...shard })
    yield* ask(
      putMetaOnce('input_key', ports.ids.next('own') + ports.ids.next('own')),
      putMetaOnce('generation', '1'),
    )
    const [rows] = yield* ask(allMeta())
    return { facts: new Map(rows.map((row) => [row.name, row.value])), wall: tx.now }
  })
  const opened: Reading = { wall, early, late: ports.time.mono() }
  const inputKey = facts.get('input_key') ?? ''

  let looks = 0
  let newest = 0
  const reload = async (): Promise<void> => {
    const look = ++looks
    const { definitions, known, global } = await store.read(function* () {
      const [definitions, known, global] = yield* ask(
        allDefinitions(),
        allLanes(),
        limitsByKey(['global']),
      )
      return { definitions, known, global }
    })
    for (const { lane, tag } of known) lanes.add(lane, tag)
    // one that began earlier and comes back later may not have seen what another has shown since
    if (look < newest) return
    newest = look
    const row = global[0]
    catalog = {
      definitions: new Map(
        definitions.flatMap(({ workflow, version, definition }) =>
          readOr<[string, Definition][]>(
            () => {
              const what = `the definition of ${workflow} version ${version}`
              const read = storedObject(definition, what) as unknown as Definition
              return [[definitionKey(workflow, version), read]]
            },
            (sentence) => {
              // its executor mends it when it registers again
              ports.log.error('definition.unreadable', { workflow, version, sentence })
              return []
            },
          ),
        ),
      ),
      current: new Map(definitions.map((each) => [each.workflow, each.current_version])),
      globalLimit: (row?.operator_value ?? row?.code_value ?? null) !== null,
    }
  }
  await reload()

  const engine: Engine = {
    ports,
    settings,
    store,
    hub,
    lanes,
    refusal,
    passes,
    meters,
    async timed(purpose, work) {
      const began = ports.time.mono()
      try {
        return await work()
      } finally {
        meters.transactions.observe({ purpose }, (ports.time.mono() - began) / 1_000)
      }
    },
    get catalog() {
      return catalog
    },
    opened,
    shard,
    get context() {
      return {
        catalog,
        settings,
        hash: (text: string) => keyedHash(inputKey, text),
        virtual: lanes.virtual,
        shard,
      }
    },
    grants: {
      token: (grant) => attemptToken(inputKey, grant),
      proven: (text) => provenGrant(inputKey, text),
    },
    async act(transition, manner, purpose = manner === 'sweep' ? 'sweep' : 'other') {
      const { context } = engine
      let handed: HandedOn | undefined
      const answer = await engine.timed(purpose, () =>
        store.run(
          (tx) => transition(tx, context),
          manner,
          ({ follow: { admit } }) =>
            handsOn && admit.size > 0
              ? function* (tx) {
                  handed = yield* handOn(tx, admit)
                }
              : null,
        ),
      )
      engine.follow(handed ? withHanded(answer.follow, handed) : answer.follow)
      return answer
    },
    read: (transition) => engine.timed('read', () => store.read(transition)),
    follow(follow) {
      for (const [lane, at] of follow.lanes) {
        lanes.wake(lane, at)
        hub.lane(lane)
      }
      for (const { session, ...told } of follow.told) hub.tell(session, told)
      for (const run of follow.changed) hub.changed(run)
      for (const { kind, run, sentence } of follow.notices) {
        meters.notices.add({ kind })
        ports.log.warn(`notice.${kind}`, { run, sentence })
      }
      if (follow.admit.size > 0) heard?.('admit', follow.admit, null)
      if (follow.orders) heard?.('orders', follow.admit, null)
      if (follow.deliveries || follow.notices.length > 0) heard?.('deliveries', follow.admit, null)
      if (follow.readyAt !== null) heard?.('wake', follow.admit, follow.readyAt)
      followed?.(follow)
    },
    onWanted(hear, whether = false) {
      heard = hear
      handsOn = whether
    },
    onFollowed(hear) {
      followed = hear
    },
    reload,
    async learn(wanted) {
      // a file has one server, which knows all that was registered
      if (store.kind === 'sqlite') return
      const unknown = wanted.some(({ workflow, version }) =>
        typeof version === 'string'
          ? !catalog.definitions.has(definitionKey(workflow, version))
          : !catalog.current.has(workflow),
      )
      if (unknown) await reload()
    },
    ordersCame: () => heard?.('orders', new Map(), null),
    start: (item) => starts.add(item),
    startMany: (items) => startBatch(items),
    async write(session, item) {
      const fault = payloadFault(item, settings.payloadMaxBytes) ?? keyFault(item)
      const answer = fault ?? (await writes.add({ session, write: item }))
      meters.wrote(item, answer)
      return answer
    },
    async signal(command) {
      return (await engine.act((tx) => signal(tx, command, settings))).answer
    },
    async decide(command) {
      return (await engine.act((tx) => decide(tx, command, settings))).answer
    },
    async cancel(command) {
      return (await engine.act((tx, context) => cancel(tx, command, context))).answer
    },
    async pause(run, by, why) {
      return (await engine.act((tx) => pause(tx, run, by, why))).answer
    },
    async resume(run, by) {
      return (await engine.act((tx) => resume(tx, run, by))).answer
    },
    async retry(command) {
      return (await engine.act((tx, context) => retry(tx, command, context))).answer
    },
    async reversion(run, version, by) {
      return (await engine.act((tx, context) => reversion(tx, run, version, by, context))).answer
    },
    async takeFrom(run, by, reason) {
      return (await engine.act((tx, context) => takeFrom(tx, run, by, reason, context))).answer
    },
    later(event, work) {
      const done = work()
        .catch((error: unknown) => {
          if (error instanceof Fault) ports.log.warn(event, { error })
          else ports.log.error(event, { error })
        })
        .finally(() => doing.delete(done))
      doing.add(done)
    },
    async idle() {
      await starts.idle()
      await writes.idle()
      while (doing.size > 0) await Promise.all(doing)
    },
  }

  const startBatch = async (items: readonly StartItem[]): Promise<StartAnswer[]> => {
    const { answers } = await engine.act(
      (tx, context) => start(tx, items, context, lanes.known),
      undefined,
      'start',
    )
    const known = answers.flatMap((answer, at) =>
      answer === 'known' ? [{ item: items[at] as StartItem, at }] : [],
    )
    const out = answers.map((answer) => answer as StartAnswer)
    if (known.length > 0) {
      const found = await store.read((tx) =>
        knownStarts(
          tx,
          known.map(({ item }) => item),
          engine.context,
        ),
      )
      known.forEach(({ at }, i) => {
        out[at] = found[i] as StartAnswer
      })
    }
    return out
  }
  const starts: Batcher<StartItem, StartAnswer> = batcher(ports.timers, (items) =>
    singly(items, startBatch),
  )

  const writeBatch = async (
    items: readonly SessionWrite[],
  ): Promise<(WriteAnswer | ItemError)[]> => {
    const answers: (WriteAnswer | ItemError | 'busy')[] = []
    // a run's second write in one flush is applied after its first
    for (const round of rounds(items)) {
      const done = await singly(round, async (part) => {
        const { answers: first } = await engine.act(
          (tx, context) => write(tx, part, context),
          undefined,
          'write',
        )
        const again = part.filter((_item, i) => first[i] === 'again')
        const second =
          again.length === 0
            ? []
            : (await engine.act((tx, context) => write(tx, again, context, 'skip', false))).answers
        return first.map((answer, i): WriteAnswer | 'busy' => {
          const last = answer === 'again' ? second[again.indexOf(part[i] as SessionWrite)] : answer
          return last === 'again' || last === undefined ? 'busy' : last
        })
      })
      round.forEach((item, i) => {
        answers[items.indexOf(item)] = done[i] ?? 'busy'
      })
    }
    const busy = items.flatMap((item, at) => (answers[at] === 'busy' ? [{ item, at }] : []))
    for (let i = 0; i < busy.length; i += 4)
      await Promise.all(
        busy.slice(i, i + 4).map(async ({ item, at }) => {
          answers[at] = await alone(item)
        }),
      )
    return (answers as (WriteAnswer | ItemError)[]).map(refusedContent)
  }
  const alone = async (item: SessionWrite): Promise<WriteAnswer | ItemError> => {
    try {
      const { answers } = await engine.act((tx, context) => write(tx, [item], context, 'wait'))
      const [answer] = answers
      if (answer !== undefined && answer !== 'busy' && answer !== 'again') return answer
      return refuse('not_found', `there is no run ${item.write.run}`, { run: item.write.run })
    } catch (error) {
      return new ItemError(error)
    }
  }
  const writes: Batcher<SessionWrite, WriteAnswer> = batcher(ports.timers, writeBatch)

  return engine
}

/** What follows a commit that has handed on what it freed. */
const withHanded = (follow: Follow, { left, follow: more }: HandedOn): Follow =>
  merge({ ...follow, admit: new Map(left) }, more)

/** A write that the store refuses for its content is answered so; trying it again would not mend it. */
const refusedContent = (answer: WriteAnswer | ItemError): WriteAnswer | ItemError => {
  if (!(answer instanceof ItemError) || !(answer.error instanceof LeaseholdError)) return answer
  const { code, message, detail } = answer.error
  return code === 'invalid_request' || code === 'key_reused'
    ? refuse(code, message, detail)
    : answer
}

/** Each run at most once in a round; later writes of the same run go to later rounds. */
const rounds = (items: readonly SessionWrite[]): SessionWrite[][] => {
  const out: SessionWrite[][] = []
  const seen = new Map<string, number>()
  for (const item of items) {
    const at = seen.get(item.write.run) ?? 0
    seen.set(item.write.run, at + 1)
    ;(out[at] ??= []).push(item)
  }
  return out
}

/** A data error in a batch re-runs its items one by one, so that one bad item harms no other (RAIL-09). */
const singly = async <I, O>(
  items: readonly I[],
  run: (items: readonly I[]) => Promise<readonly O[]>,
): Promise<(O | ItemError)[]> => {
  try {
    return [...(await run(items))]
  } catch (error) {
    // what another try would not mend may be the fault of one row
    if (error instanceof Fault && error.retryable) throw error
    if (items.length === 1) return [new ItemError(error)]
    const answers: (O | ItemError)[] = []
    for (const item of items) {
      try {
        const [answer] = await run([item])
        answers.push(answer as O)
      } catch (each) {
        answers.push(new ItemError(each))
      }
    }
    return answers
  }
}
