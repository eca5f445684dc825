// Where notices go: sinks that refuse, answer late or never, and whose answers get lost; a second server that relays to them
// beside the orchestrator; people who have what is dead tried anew; and what must hold of all that (RAIL-01, RAIL-02, RAIL-04).
import type Database from 'better-sqlite3'
import { Fault } from '../../src/kernel/errors.ts'
import type { Random } from '../../src/kernel/random.ts'
import type { Loop, Upkeep } from '../../src/maintenance/loop.ts'
import { startLoop } from '../../src/maintenance/loop.ts'
import { makeRelay } from '../../src/maintenance/relay.ts'
import type { Message, Sent, Sink } from '../../src/model/delivery.ts'
import { noticeKinds } from '../../src/model/notice.ts'
import type { Settings } from '../../src/model/settings.ts'
import type { Batch, Steps, Tx } from '../../src/store/sql.ts'
import { settleDelivery } from '../../src/transitions/settle-delivery.ts'
import type { Commit, Touch } from './commit.ts'
import { emptyCommit, watched } from './commit.ts'
import type { Disk } from './disk.ts'
import type { Change } from './shadow.ts'
import type { Node, World } from './world.ts'
import { pick } from './world.ts'

interface Options {
  readonly on: boolean
  /** A world without faults. */
  readonly quiet: boolean
  /** Whether the store's clock has jumped, so that claims lapse early, or count for nothing. */
  readonly jumped: () => boolean
  readonly overMs: number
  readonly settings: Settings
  readonly committed: (commit: Commit) => void
}

/** What is known of a delivery from the statements of the commits. */
interface Known {
  sending: boolean
  claim: number
  until: number
  lapses: number
  claims: number
  sheds: number
  sends: number
  taken: number
  /** A new owner of the file has freed a claim of it, as if the other server were gone. */
  freed: boolean
}

type Item = Readonly<Record<string, string | number>>
const itemsOf = ({ params: [batch] }: Touch): readonly Item[] =>
  (batch as Batch).items as readonly Item[]

const SINKS = [
  { name: 'ops', kinds: noticeKinds },
  { name: 'mail', kinds: ['attempt_lost', 'executor_lost', 'run_failed'] },
] as const

/** How long after all is well nothing may be open any more (L7: a minute at most). */
const SETTLED_MS = 25_000

export class Sinks {
  readonly #world: World
  readonly #disk: Disk
  readonly #options: Options
  readonly #random: Random
  readonly #known = new Map<string, Known>()
  readonly #outages = new Map<string, readonly [from: number, until: number]>()
  readonly #open: Database.Statement
  readonly #earlier: Database.Statement
  readonly #row: Database.Statement
  #registered = false
  #healing: number | null = null
  /** When each was ordered, in true time. */
  readonly #orderedAt = new Map<string, number>()
  /** When each was claimed last, and when people had it tried anew. */
  readonly #claimedAt = new Map<string, number>()
  readonly #revivedAt = new Map<string, number>()
  #second: { readonly node: Node; readonly loop: Loop; stop(): Promise<void> } | null = null

  constructor(world: World, disk: Disk, options: Options) {
    this.#world = world
    this.#disk = disk
    this.#options = options
    this.#random = world.chance('sinks')
    const { db } = disk.store
    this.#open = db.prepare(
      `select id, state from deliveries where state in ('due', 'sending', 'dead') order by created_at, id`,
    )
    this.#earlier = db
      .prepare(
        `select e.id from deliveries d join deliveries e on e.run = d.run and e.sink = d.sink and e.state in ('due', 'sending') and e.seq < d.seq where d.id = ?`,
      )
      .pluck()
    this.#row = db.prepare('select state, holder from deliveries where id = ?')
  }

  start(): void {
    const { on, quiet, overMs } = this.#options
    if (!on || quiet) return
    for (const { name } of SINKS) {
      const from = pick(this.#random, overMs)
      this.#outages.set(name, [from, from + pick(this.#random, 15_000)])
    }
    if (this.#random.next() < 0.6) {
      this.#boot()
      void this.#befall()
    }
  }

  /** Faults are over: all that is open must come to its end, and what is dead too, since people have it tried anew. */
  leave(): void {
    this.#healing = this.#world.now
  }

  get over(): boolean {
    return !this.#options.on || this.#open.get() === undefined
  }

  /** Looked at while the world heals. */
  look(): void {
    const since = this.#healing
    if (!this.#options.on || since === null) return
    const left = this.#open.all() as { id: string; state: string }[]
    const dead = left.filter(({ state }) => state === 'dead').slice(0, 5)
    for (const { id } of dead) void this.#operate(id, 'retry')
    // a run that ends while the world heals has its notices then
    for (const { id, state } of left)
      if (this.#world.now - Math.max(since, this.#orderedAt.get(id) ?? 0) > SETTLED_MS)
        this.#world.violate('L7', `${id} is ${state}, and nothing hinders it`)
  }

  /** The sinks as a server has them; `holder` is what it calls itself. */
  of(node: Node, holder: string): readonly Sink[] {
    if (!this.#options.on) return []
    return SINKS.map(({ name, kinds }) => ({
      name,
      type: 'sim',
      kinds,
      send: (message: Message) => this.#send(name, message, node, holder),
    }))
  }

  async #send(sink: string, message: Message, node: Node, holder: string): Promise<Sent> {
    const world = this.#world
    const id = `${message.id}_${sink}`
    const known = this.#of(id)
    known.sends += 1
    world.say(() => `sink ${sink} gets ${id} from ${node.name}`)
    if (known.sends > known.claims - known.sheds)
      world.violate('RAIL-02', `${id} is sent ${known.sends} times for ${known.claims} claims`)
    const row = this.#row.get(id) as { state: string; holder: string | null } | undefined
    const certain = !this.#options.jumped() && !known.freed
    if (certain && (row?.state !== 'sending' || row.holder !== holder))
      world.violate('RAIL-02', `${id} is sent by ${holder}; it is ${row?.state} by ${row?.holder}`)
    const claimedAt = this.#claimedAt.get(id) ?? 0
    const { deliveryLeaseMs: leaseMs, deliveryTimeoutMs: timeoutMs } = this.#options.settings
    // by true time, whatever the store's clock does: who claims begins to count before the store does
    if (world.now + timeoutMs > claimedAt + leaseMs)
      world.violate(
        'RAIL-02',
        `${id} is sent ${world.now - claimedAt} ms after it was claimed: its answer may come when the claim has lapsed`,
      )
    // what was dead held up nobody, until somebody had it tried anew
    const earlier = (this.#earlier.all(id) as string[]).find(
      (each) => (this.#revivedAt.get(each) ?? -1) < claimedAt,
    )
    if (earlier !== undefined)
      world.violate('RAIL-02', `${id} is sent before ${earlier}, of the same run`)
    const took = (): Sent => {
      known.taken += 1
      return { ok: true, note: 'taken' }
    }
    const luck = this.#well ? 1 : this.#random.next()
    const latency = 1 + pick(this.#random, luck < 0.9 ? timeoutMs - 50 : 20)
    const [from, until] = this.#outages.get(sink) ?? [0, 0]
    if (!this.#well && world.now >= from && world.now < until) {
      await world.sleep(node, 5)
      return { ok: false, why: 'it is down' }
    }
    if (luck < 0.08) {
      // taken or not, nobody hears of it in time, unless it stood still itself meanwhile
      const late: Sent = luck < 0.04 ? took() : { ok: false, why: 'it was too late' }
      await world.sleep(node, 3 * timeoutMs)
      return late
    }
    await world.sleep(node, latency)
    if (luck < 0.2) return { ok: false, why: 'it answered 500' }
    if (luck < 0.22) return { ok: false, why: 'it answered 410', forGood: true }
    if (luck < 0.3) {
      took()
      throw new Error('the answer was lost')
    }
    return took()
  }

  get #well(): boolean {
    return this.#options.quiet || this.#healing !== null
  }

  #of(id: string): Known {
    let known = this.#known.get(id)
    if (!known) {
      known = {
        sending: false,
        claim: 0,
        until: 0,
        lapses: 0,
        claims: 0,
        sheds: 0,
        sends: 0,
        taken: 0,
        freed: false,
      }
      this.#known.set(id, known)
    }
    return known
  }

  // what must hold after each commit

  check(commit: Commit, change: Change): void {
    this.#causes(commit, change)
    for (const touch of commit.writes) {
      if (touch.name === 'sinks.put') this.#registered = true
      if (touch.name === 'deliveries.order')
        for (const { id } of touch.rows) this.#orderedAt.set(String(id), this.#world.now)
      if (touch.name === 'deliveries.revive')
        for (const { id } of touch.rows) this.#revivedAt.set(String(id), this.#world.now)
      if (touch.name === 'deliveries.claim') this.#claimed(touch, commit)
      if (touch.name === 'deliveries.free')
        for (const { id } of touch.rows) this.#of(String(id)).freed = true
      if (/^deliveries\.(deliver|refuse|shed|annul)$/.test(touch.name)) this.#settled(touch, commit)
    }
  }

  /** RAIL-01: a notice is stored with its cause, and what is to be delivered of it with the notice. */
  #causes(commit: Commit, change: Change): void {
    const stored = new Set<string>()
    for (const { name, rows } of commit.writes)
      if (name === 'notices.insert')
        for (const { run, kind, occurrence } of rows)
          stored.add(`${String(kind)} ${String(run)} ${String(occurrence)}`)
    const must = (what: string): void => {
      if (!stored.has(what)) this.#world.violate('RAIL-05', `nobody is told of it: ${what}`)
    }
    for (const { run, attempt, end } of change.attempts)
      if (end === 'lost' || end === 'expired') must(`attempt_lost ${run} ${attempt}`)
    for (const { before, after } of change.runs) {
      if (before === undefined || before.status === after.status) continue
      if (after.status === 'failed' && after.on_end_of === null && !(after.parent && after.awaited))
        must(`run_failed ${after.id} `)
      if (after.status === 'paused' && after.reason !== 'paused')
        must(`run_stuck ${after.id} ${after.rev}`)
    }
    for (const { before, after } of change.approvals)
      if (!before) must(`approval_asked ${after.run} ${after.key}`)
    for (const { before, after } of change.sessions)
      if (before && after.state === 'ended' && before.state !== 'ended') {
        const why = commit.writes.some(({ name }) => name === 'sessions.end_lapsed')
        if (why) must(`executor_lost ${after.id} `)
      }
    if (!this.#registered || stored.size === 0) return
    const ordered = commit.writes
      .filter(({ name }) => name === 'deliveries.order')
      .reduce((sum, { rows }) => sum + rows.length, 0)
    const wanted = [...stored].reduce((sum, each) => {
      const [kind = ''] = each.split(' ')
      return sum + SINKS.filter(({ kinds }) => (kinds as readonly string[]).includes(kind)).length
    }, 0)
    if (ordered !== wanted)
      this.#world.violate(
        'RAIL-01',
        `${ordered} deliveries are stored with their notices, not ${wanted}`,
      )
  }

  #claimed({ rows, params }: Touch, { now }: Commit): void {
    for (const row of rows) {
      const id = String(row['id'])
      this.#claimedAt.set(id, this.#world.now)
      const known = this.#of(id)
      if (known.sending) {
        if (now < known.until && !this.#options.jumped() && !known.freed)
          this.#world.violate(
            'RAIL-02',
            `${id} is claimed ${known.until - now} ms before its claim lapses`,
          )
        if (row['lapses'] !== known.lapses + 1)
          this.#world.violate('RAIL-02', `a claim of ${id} lapsed and is not counted`)
      }
      known.sending = true
      known.claims += 1
      known.claim = Number(row['claim'])
      known.lapses = Number(row['lapses'])
      known.until = now + Number(params[4])
    }
  }

  #settled(touch: Touch, commit: Commit): void {
    for (const row of touch.rows) {
      const id = String(row['id'])
      const known = this.#of(id)
      const item = itemsOf(touch).find((each) => each['id'] === id)
      if (!known.sending || item?.['claim'] !== known.claim)
        this.#world.violate(
          'RAIL-02',
          `${touch.name} of ${id} is recorded under claim ${item?.['claim']}; the last is ${known.claim}`,
        )
      known.sending = false
      if (touch.name === 'deliveries.shed') {
        if (item?.['cut'] === 1) known.lapses += 1
        else known.sheds += 1
      }
      if (touch.name !== 'deliveries.deliver') continue
      if (known.taken === 0)
        this.#world.violate('RAIL-04', `${id} is recorded as delivered; its sink never took it`)
      const receipts = commit.writes
        .filter(({ name }) => name === 'receipts.insert')
        .flatMap((each) => itemsOf(each))
        .filter((each) => each['recipient'] === id)
      if (receipts.length !== 1)
        this.#world.violate('RAIL-04', `${id} is delivered with ${receipts.length} receipts`)
    }
  }

  // a second server, which relays beside the orchestrator

  #boot(): void {
    const world = this.#world
    const { settings } = this.#options
    const node = world.born('relay', { offset: 0 })
    const run = <T>(transaction: (tx: Tx) => Steps<T>): Promise<T> => this.#run(node, transaction)
    const upkeep = {
      ports: node.ports,
      settings,
      read: <T>(transaction: (tx: Tx) => Steps<T>) => this.#disk.store.read(transaction),
      store: { run },
    } as unknown as Upkeep
    const relay = makeRelay({
      sinks: this.of(node, node.name),
      self: node.name,
      upkeep,
      more: () => loop.soon(),
    })
    const loop = startLoop(relay, upkeep, () => Promise.resolve())
    const stop = async (): Promise<void> => {
      await loop.stop()
      await relay.stop(settings.deliveryDrainMs)
    }
    this.#second = { node, loop, stop }
  }

  /** It crashes, is stopped for a while, or stops politely, and comes up again. */
  async #befall(): Promise<void> {
    const world = this.#world
    const random = this.#random
    while (this.#healing === null) {
      await world.sleep(null, 1_000 + pick(random, 9_000))
      const second = this.#second
      if (second === null || this.#healing !== null) continue
      const roll = random.next()
      if (roll < 0.4) second.node.stalledUntil = world.now + pick(random, 8_000)
      else if (roll < 0.75) second.node.alive = false
      else {
        await Promise.race([second.stop(), world.sleep(null, 10_000)])
        second.node.alive = false
      }
      if (second.node.alive) continue
      await world.sleep(null, 200 + pick(random, 2_000))
      this.#boot()
    }
  }

  async #run<T>(node: Node, transaction: (tx: Tx) => Steps<T>): Promise<T> {
    const never = (): Promise<T> => new Promise<T>(() => undefined)
    if (!node.alive || this.#world.violation) return never()
    const luck = this.#well ? 1 : this.#random.next()
    if (luck < 0.05) throw new Fault('store_unavailable', 'the connection was lost')
    const answer = await this.#transact(transaction)
    if (luck < 0.08) node.alive = false
    if (luck < 0.13) throw new Fault('unknown_outcome', 'the connection was lost at the commit')
    return node.alive ? answer : never()
  }

  #transact<T>(transaction: (tx: Tx) => Steps<T>): Promise<T> {
    const commits: Commit[] = []
    const answer = this.#disk.store.run((tx) => {
      const commit = emptyCommit(tx)
      commits.push(commit)
      return watched(transaction(tx), commit)
    })
    for (const commit of commits) if (commit.whole) this.#options.committed(commit)
    return answer
  }

  async #operate(id: string, what: 'retry' | 'drop'): Promise<void> {
    await this.#transact((tx) => settleDelivery(tx, id, what, 'people'))
  }

  /** The whole store at the end, in SQL that knows nothing of the engine's own. */
  audit(): void {
    if (!this.#options.on) return
    const { db } = this.#disk.store
    const find = (sql: string): unknown => db.prepare(sql).pluck().get()
    const lacking = find(
      `select d.id from deliveries d where d.state in ('delivered', 'dropped', 'void') and (select count(*) from receipts c where c.recipient = d.id) <> 1`,
    )
    if (lacking !== undefined)
      this.#world.violate(
        'RAIL-04',
        `${JSON.stringify(lacking)} is settled and has not one receipt`,
      )
    const early = find(
      `select c.recipient from receipts c join deliveries d on d.id = c.recipient where d.state in ('due', 'sending', 'dead')`,
    )
    if (early !== undefined)
      this.#world.violate('RAIL-04', `${JSON.stringify(early)} has a receipt and is open`)
    for (const [id, { sends, claims, sheds }] of this.#known)
      if (sends > claims - sheds) this.#world.violate('RAIL-02', `${id} was sent too often`)
  }
}
