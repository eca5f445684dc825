// Those who start runs and do to them what people do: signal, approve, cancel, wait for the end. What an answer of the
// engine acknowledged goes into the history; a call that failed says nothing, and is made again where it matters.
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import type { Client } from '../../src/client/client.ts'
import { mintIds } from '../../src/kernel/ids.ts'
import type { Random } from '../../src/kernel/random.ts'
import { seededRandom, systemRandom } from '../../src/kernel/random.ts'
import { systemTime } from '../../src/kernel/time.ts'
import { inTransaction } from '../../src/orchestrator/user-transaction.ts'
import type { History } from './history.ts'
import type { Kind } from './load.ts'
import { among, signalTo, someKind } from './load.ts'

export interface PeopleOptions {
  readonly seed: number
  /** How many start and wait side by side. */
  readonly count: number
  readonly clients: readonly Client[]
  readonly history: History
  /** A connection of the user's own, for a transaction of the user's own. */
  readonly connection: () => Promise<pg.Client>
}

export interface People {
  /** Starts that are not over yet. */
  readonly busy: number
  /** Calls that failed for good, by what they were. */
  readonly failed: ReadonlyMap<string, number>
  /** No more starts. */
  rest(): void
  /** Does what is still owed to runs that nobody else would end. */
  care(owed: { readonly run: string; readonly workflow: string }[]): Promise<void>
  /** No more approvals either. */
  leave(): Promise<void>
}

const WAIT_MS = 15_000
/** Of one question for a result. */
const POLL_MS = 4_000
const ids = mintIds(systemTime, systemRandom)

export const startPeople = ({
  seed,
  count,
  clients,
  history,
  connection,
}: PeopleOptions): People => {
  const failed = new Map<string, number>()
  const over = new AbortController()
  let resting = false
  let busy = 0

  const tried = async <T>(what: string, act: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await act()
    } catch (error) {
      const code = (error as { code?: string }).code ?? 'unknown'
      failed.set(`${what}: ${code}`, (failed.get(`${what}: ${code}`) ?? 0) + 1)
      return undefined
    }
  }
  const anyOf = (chance: Random): Client => clients[among(chance, 0, clients.length - 1)] as Client

  const signal = (client: Client, run: string): Promise<unknown> => {
    const { id, payload } = signalTo(run)
    return tried('signal', async () => {
      await client.signal(run, nameOf(run), payload, { id })
      history.signaled.push({ run, id })
    })
  }
  const nameOf = (run: string): string =>
    history.asked.get(run)?.workflow === 'race' ? 'maybe' : 'go'

  const cancel = (client: Client, run: string): Promise<unknown> => {
    history.cancelAsked.add(run)
    return tried('cancel', async () => {
      await client.cancel(run)
      history.canceled.add(run)
    })
  }

  /** Starts one in one of the ways there are, and answers the run that it was acknowledged as. */
  const start = async (chance: Random, kind: Kind): Promise<string | undefined> => {
    const { workflow, owner } = kind
    const input = kind.input(chance)
    const way = chance.next()
    const ask = (by: 'client' | 'transaction', run = ids.next('run')): string => {
      history.asked.set(run, { run, workflow, input, by })
      return run
    }
    if (way < 0.15 && owner === undefined) return inOwnTransaction(chance, workflow, input, ask)
    const options = owner === undefined ? {} : { owner }
    if (way < 0.3) {
      // twice under one key, by two servers at once
      const key = ids.next('cmd')
      const named = new Set<string>()
      history.keys.set(key, named)
      await Promise.all(
        [anyOf(chance), anyOf(chance)].map((client) =>
          tried('start', async () => {
            const { id } = await client.start(workflow, input, {
              ...options,
              key,
              id: ask('client'),
            })
            history.started.add(id)
            named.add(id)
          }),
        ),
      )
      return [...named][0]
    }
    const run = ask('client')
    return tried('start', async () => {
      await anyOf(chance).start(workflow, input, { ...options, id: run })
      history.started.add(run)
      return run
    })
  }

  const inOwnTransaction = async (
    chance: Random,
    workflow: string,
    input: unknown,
    ask: (by: 'transaction', run?: string) => string,
  ): Promise<string | undefined> =>
    tried('transaction', async () => {
      const client = await connection()
      try {
        await client.query('begin')
        const run = await inTransaction(client).start(workflow, input)
        if (chance.next() < 0.2) {
          await client.query('rollback')
          history.rolledBack.add(run)
          return undefined
        }
        ask('transaction', run)
        await client.query('commit')
        history.started.add(run)
        return run
      } finally {
        await client.end().catch(() => undefined)
      }
    })

  /** A start of an own transaction is applied a little after its commit. */
  const applied = async (client: Client, run: string): Promise<void> => {
    const until = performance.now() + WAIT_MS
    const isThere = () =>
      client.get(run).then(
        () => true,
        () => false,
      )
    while (!(await isThere()) && performance.now() < until) await pause(200)
  }

  /** One run from its start to its end, as far as one waits for it. */
  const one = async (chance: Random): Promise<void> => {
    const kind = someKind(chance)
    const run = await start(chance, kind)
    if (run === undefined) return
    const client = anyOf(chance)
    if (history.asked.get(run)?.by === 'transaction') await applied(client, run)
    if (kind.people === 'signal') await signal(client, run)
    if (kind.people === 'maybe signal' && chance.next() < 0.5) {
      await pause(among(chance, 0, 500))
      await signal(client, run)
    }
    if (kind.people === 'cancel' || kind.people === 'cancel soon') {
      await pause(among(chance, 0, 400))
      await cancel(client, run)
    }
    const until = performance.now() + WAIT_MS
    while (performance.now() < until) {
      const result = await tried('result', () => client.result(run, { timeoutMs: POLL_MS }))
      if (result === undefined) await pause(500)
      if (result?.ended !== true) continue
      const output = result.status === 'succeeded' ? result.output : null
      history.told.push({ run: result.run, status: result.status, output })
      return
    }
  }

  const person = async (place: number): Promise<void> => {
    const chance = seededRandom(seed + place)
    while (!resting) {
      busy += 1
      await one(chance)
      busy -= 1
      // a start that fails at once is not tried at once again
      await pause(among(chance, 0, 100))
    }
  }
  const approver = async (): Promise<void> => {
    const chance = seededRandom(seed - 1)
    while (!over.signal.aborted) {
      const client = anyOf(chance)
      const asked = await tried('approvals', () => client.approvals({ limit: '100' }))
      await Promise.all(
        (asked?.approvals ?? []).map(({ id }) =>
          tried('approve', async () => {
            await client.approve(id)
            history.approved.add(id)
          }),
        ),
      )
      await pause(200)
    }
  }
  const approving = approver()
  void Promise.all(Array.from({ length: count }, (_, place) => person(place)))

  return {
    get busy() {
      return busy
    },
    failed,
    rest: () => void (resting = true),
    async care(owed) {
      const [client] = clients as [Client]
      await Promise.all(
        owed.map(({ run, workflow }) =>
          workflow === 'never' ? cancel(client, run) : signal(client, run),
        ),
      )
    },
    async leave() {
      over.abort()
      await approving
    },
  }
}
