// The limit on PostgreSQL: the least SQL that could do the same durable work, batched as well as we know how. A row a run
// with a fence, a row a step; what is claimed, stepped and done meanwhile shares a statement. No journal of attempts, no
// lanes, no promises: what ours is measured against, in the same run, on the same server.
import pg from 'pg'
import type { Figures } from './figures.ts'
import { percentile, stopwatch } from './figures.ts'

const SCHEMA = `
  create table jobs (id bigint generated always as identity primary key, state smallint not null default 0,
    due_at timestamptz not null default now(), fence int not null default 0, until timestamptz, input text, output text,
    done_at timestamptz) with (fillfactor = 70);
  create index jobs_due on jobs (due_at, id) where state = 0;
  create table entries (job bigint not null, n int not null, output text, at timestamptz not null default now(), primary key (job, n));`

const INSERT = `insert into jobs (input) select i from unnest($1::text[]) u(i) returning id`
const CLAIM = `update jobs set state = 1, fence = fence + 1, until = now() + interval '15 s' where id = any(array(
  select id from jobs where state = 0 and due_at <= now() order by due_at, id for update skip locked limit $1)) returning id, fence`
const DONE = `update jobs j set state = 2, output = '{"ok":true}', done_at = now(), until = null
  from unnest($1::bigint[], $2::int[]) u(id, fence) where j.id = u.id and j.fence = u.fence and j.state = 1`
const STEP = `insert into entries (job, n, output) select u.id, u.n, '1' from unnest($1::bigint[], $2::int[], $3::int[]) u(id, fence, n)
  join jobs j on j.id = u.id and j.fence = u.fence and j.state = 1`

interface Job {
  readonly id: string
  readonly fence: number
}

const open = async (url: string): Promise<pg.Pool> => {
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  await pool.query(SCHEMA)
  return pool
}

const prepared = (name: string, text: string, values: unknown[]) => ({ name, text, values })

/** While one statement is in flight the next collects. */
const grouped = <T>(
  run: (items: T[]) => Promise<unknown>,
  lanes = 1,
): ((item: T) => Promise<void>) => {
  let collected: { item: T; done: () => void; failed: (error: unknown) => void }[] = []
  let busy = 0
  const flush = async (): Promise<void> => {
    const part = collected.splice(0, 500)
    busy += 1
    try {
      await run(part.map(({ item }) => item))
      for (const { done } of part) done()
    } catch (error) {
      for (const { failed } of part) failed(error)
    }
    busy -= 1
    pump()
  }
  const pump = (): void => {
    while (busy < lanes && collected.length > 0) void flush()
  }
  return (item) =>
    new Promise((done, failed) => {
      collected.push({ item, done, failed })
      if (collected.length === 1) setImmediate(pump)
    })
}

const calls = (pool: pg.Pool) => ({
  insert: grouped<string>((all) => pool.query(prepared('insert', INSERT, [all])), 2),
  claim: async (most: number) => (await pool.query<Job>(prepared('claim', CLAIM, [most]))).rows,
  done: grouped<Job>((all) =>
    pool.query(prepared('done', DONE, [all.map(({ id }) => id), all.map(({ fence }) => fence)])),
  ),
  step: grouped<Job & { n: number }>((all) =>
    pool.query(
      prepared('step', STEP, [
        all.map(({ id }) => id),
        all.map(({ fence }) => fence),
        all.map(({ n }) => n),
      ]),
    ),
  ),
})

const INPUT = '{"n":1}'
const load = async (pool: pg.Pool, count: number): Promise<void> => {
  for (let done = 0; done < count; done += 500)
    await pool.query(INSERT, [Array.from({ length: Math.min(500, count - done) }, () => INPUT)])
}

const start = async (url: string, count: number, callers: number): Promise<Figures> => {
  const pool = await open(url)
  const { insert } = calls(pool)
  for (let i = 0; i < 200; i++) await insert(INPUT)
  const elapsed = stopwatch()
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let i = 0; i < count / callers; i++) await insert(INPUT)
    }),
  )
  const rate = (count / elapsed()) * 1000
  await pool.end()
  return { rate }
}

const startBulk = async (url: string, count: number): Promise<Figures> => {
  const pool = await open(url)
  const elapsed = stopwatch()
  await load(pool, count)
  const rate = (count / elapsed()) * 1000
  await pool.end()
  return { rate }
}

/** Claims 200 when it has room in 600, and calls `work` for each. */
const drained = async (
  pool: pg.Pool,
  count: number,
  work: (job: Job, all: ReturnType<typeof calls>) => Promise<void>,
): Promise<number> => {
  const all = calls(pool)
  let from = 0
  let left = count
  let active = 0
  return new Promise((resolve, reject) => {
    let claiming = false
    const pull = async (): Promise<void> => {
      if (claiming || active > 400) return
      claiming = true
      const jobs = await all.claim(200)
      claiming = false
      if (from === 0) from = performance.now()
      active += jobs.length
      for (const job of jobs)
        work(job, all)
          .then(() => all.done(job))
          .then(() => {
            active -= 1
            left -= 1
            if (left === 0) resolve(performance.now() - from)
            else void pull().catch(reject)
          }, reject)
      if (jobs.length > 0) void pull().catch(reject)
    }
    void pull().catch(reject)
  })
}

const drain = async (url: string, count: number): Promise<Figures> => {
  const pool = await open(url)
  await load(pool, count)
  const took = await drained(pool, count, (job, { step }) => step({ ...job, n: 0 }))
  await pool.end()
  return { rate: (count / took) * 1000 }
}

const stepwise = async (url: string, runs: number, steps: number): Promise<Figures> => {
  const pool = await open(url)
  await load(pool, runs)
  const took = await drained(pool, runs, async (job, { step }) => {
    for (let n = 0; n < steps; n++) await step({ ...job, n })
  })
  await pool.end()
  return { rate: ((runs * steps) / took) * 1000 }
}

/** Claim one and report it done, a job after a job. */
const serial = async (url: string, count: number): Promise<Figures> => {
  const pool = await open(url)
  await load(pool, count)
  const { claim, done } = calls(pool)
  const elapsed = stopwatch()
  for (let left = count; left > 0; left--) for (const job of await claim(1)) await done(job)
  const rate = (count / elapsed()) * 1_000
  await pool.end()
  return { rate }
}

/** One job at a time on an idle server: inserted, claimed and done. */
const idle = async (url: string, count: number): Promise<Figures> => {
  const pool = await open(url)
  const { insert, claim, step, done } = calls(pool)
  const bodies: number[] = []
  const results: number[] = []
  for (let i = 0; i < count; i++) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    const elapsed = stopwatch()
    await insert(INPUT)
    const [job] = await claim(1)
    bodies.push(elapsed())
    await step({ ...(job as Job), n: 0 })
    await done(job as Job)
    results.push(elapsed())
  }
  await pool.end()
  return {
    p50: percentile(bodies, 0.5),
    p99: percentile(bodies, 0.99),
    result: percentile(results, 0.5),
  }
}

export const postgresLimits: Readonly<
  Record<string, (url: string, n: number) => Promise<Figures>>
> = {
  P1: (url, n) => start(url, n, 20),
  P2: startBulk,
  P3: drain,
  P4: (url, n) => stepwise(url, n / 20, 20),
  P4b: (url, n) => stepwise(url, 1, n),
  P5: idle,
  P10c: serial,
}
