// The engine: the store's transitions with their batches, and what follows from each commit. It is what the handler, the
// direct executors and the loops all call. It holds no truth of its own: everything here can be lost at any moment.
import type { AttemptGrant } from '../kernel/attempt-token.ts'
import { attemptToken, provenGrant } from '../kernel/attempt-token.ts'
import { keyedHash } from '../kernel/digest.ts'
import { Fault, LeaseholdError } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import { payloadFault } from '../model/apply.ts'
import type { Reading } from '../maintenance/reap-sessions.ts'
import type { Catalog } from '../model/definition.ts'
import type { Follow } from '../model/follow.ts'
import { merge } from '../model/follow.ts'
import { keyFault } from '../model/indexed.ts'
import type { RunStatus } from '../model/run.ts'
import type { Settings } from '../model/settings.ts'
import type { Shard } from '../model/shard.ts'
import { ALONE, membershipOf, notThisShard, shardIds } from '../model/shard.ts'
import type { PlanContext, StartCommand } from '../model/start.ts'
import type { WriteAnswer } from '../model/work.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import type { Manner, Store } from '../store/store.ts'
import { allMeta, MEMBERSHIP, putMetaOnce } from '../store/tables/orders.ts'
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
import { takeFrom } from '../transitions/take-from.ts'
import type { SessionWrite } from '../transitions/write.ts'
import type { Outcome } from '../kernel/outcome.ts'
import { makeBatches } from './batches.ts'
import { keepDefinitions } from './definitions.ts'
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

  const definitions = await keepDefinitions({ store, lanes, log: ports.log })

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
      return definitions.catalog
    },
    opened,
    shard,
    get context() {
      return {
        catalog: definitions.catalog,
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
    reload: definitions.reload,
    learn: definitions.learn,
    ordersCame: () => heard?.('orders', new Map(), null),
    start: (item) => batches.start(item),
    startMany: (items) => batches.startMany(items),
    async write(session, item) {
      const fault = payloadFault(item, settings.payloadMaxBytes) ?? keyFault(item)
      const answer = fault ?? (await batches.write({ session, write: item }))
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
      await batches.idle()
      while (doing.size > 0) await Promise.all(doing)
    },
  }

  const batches = makeBatches({
    store,
    lanes,
    timers: ports.timers,
    contextNow: () => engine.context,
    act: (...what) => engine.act(...what),
  })
  return engine
}

/** What follows a commit that has handed on what it freed. */
const withHanded = (follow: Follow, { left, follow: more }: HandedOn): Follow =>
  merge({ ...follow, admit: new Map(left) }, more)
