// The commands against a real server: what they print, as words and as JSON, and how they end.
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import {
  CALM,
  called,
  fixture,
  folder,
  leasehold,
  ran,
  runThat,
  serve,
  start,
  until,
  work,
} from './processes.ts'

/** A server with an executor, and commands called with its address. */
const running = async () => {
  const cwd = folder()
  const { url, client, process: server } = await serve(cwd, CALM)
  const executor = await work(cwd, url)
  const call = (...args: string[]) => called(args, { cwd, env: { LEASEHOLD_URL: url } })
  const json = async (...args: string[]): Promise<unknown> => {
    const { code, out, err } = await call(...args, '--json')
    if (code !== 0) throw new Error(`${args.join(' ')}: ${code} ${err}`)
    return JSON.parse(out) as unknown
  }
  return { cwd, url, client, server, executor, call, json }
}

test('OPS-03 every read prints JSON that scripts can use', async () => {
  const { call, json, client } = await running()
  expect(await call('start', 'greet', '--input', '{"name":"Ann"}', '--wait')).toMatchObject({
    code: 0,
    out: '"Hello, Ann!"\n',
  })
  const { id } = await client.start('limited', null)
  await runThat(client, id, ({ run }) => run.status === 'waiting')

  expect(await json('runs')).toMatchObject({
    runs: [{ workflow: 'limited' }, { workflow: 'greet', status: 'succeeded' }],
    next: null,
  })
  expect(await json('runs', '--status', 'succeeded', '--workflow', 'greet')).toMatchObject({
    runs: [{ workflow: 'greet' }],
  })
  expect(await json('runs', '--counts')).toMatchObject({
    counts: expect.arrayContaining([{ status: 'succeeded', count: 1, more: false }]) as unknown,
  })
  expect(await json('show', 'latest')).toMatchObject({
    run: { id },
    explanation: { run: id, conditions: expect.any(Array) as unknown },
  })
  expect(await json('executors')).toMatchObject({ executors: [{ state: 'live' }] })
  expect(await json('queues')).toMatchObject({ queues: [{ queue: 'default', executors: 1 }] })
  expect(await json('queues', 'default')).toMatchObject({ wanted: 0, oldestWaitMs: 0, free: 10 })
  expect((await call('queues', 'default')).out).toMatch(/default +0 +- /)
  expect(await json('slots')).toMatchObject({ slots: [{ key: 'one', used: 1, value: 1 }] })
  expect(await json('slots', 'one')).toMatchObject({ slot: { key: 'one' }, holders: [{ run: id }] })
  expect(await json('slots', 'one', '--set', '5')).toMatchObject({
    slot: { value: 5, codeValue: 1, operatorValue: 5 },
  })
  expect(await json('slots', 'one', '--set', 'code')).toMatchObject({
    slot: { value: 1, operatorValue: null },
  })
  expect(await json('approve')).toMatchObject({ approvals: [] })
  expect(await json('doctor')).toMatchObject({ well: true })
  const ids = await call('runs', '--quiet')
  expect(ids.out.trim().split('\n')).toHaveLength(2)
})

test('OPS-03 notices are listed, page by page, as words and as JSON; a cursor that was cut is refused', async () => {
  const { call, json, client } = await running()
  expect((await call('notices')).err).toContain('there is nothing that people are to see')
  for (const id of ['run_a', 'run_b']) {
    await client.start('ends badly', null, { id })
    await runThat(client, id, ({ run }) => run.status === 'failed')
  }
  expect((await call('notices')).out).toMatch(/on_end_not_started +run_b +nobody, which was to run/)
  const page = (await json('notices', '--limit', '1')) as { next: string }
  expect(page).toMatchObject({ notices: [{ run: 'run_b', kind: 'run_failed' }] })
  expect(await json('notices', '--cursor', page.next)).toMatchObject({
    notices: [
      { run: 'run_b', kind: 'on_end_not_started' },
      { run: 'run_a', kind: 'run_failed' },
      { run: 'run_a', kind: 'on_end_not_started' },
    ],
    next: null,
  })
  const cut = await call('notices', '--cursor', page.next.slice(0, -2))
  expect(cut.code).toBe(2)
  expect(cut.err).toContain('is not one that this list gave')
})

test('RAIL-16 schedules are made, shown, changed, paused, fired by hand and deleted, as words and as JSON', async () => {
  const { call, json, client } = await running()
  expect((await call('schedules')).err).toContain('there is no schedule')
  const made = await call(
    'schedules',
    'create',
    'nightly',
    '--cron',
    '30 2 * * *',
    '--zone',
    'Europe/Berlin',
    '--workflow',
    'greet',
    '--input',
    '{"name":"Ann"}',
    '--overlap',
    'skip',
  )
  expect(made.code).toBe(0)
  expect(made.out.match(/02:30:00 GMT\+[12]/g)).toHaveLength(11)
  expect(await json('schedules')).toMatchObject({ schedules: [{ name: 'nightly' }] })
  expect(await json('schedules', 'show', 'nightly')).toMatchObject({
    schedule: { zone: 'Europe/Berlin', missed: 'one', overlap: 'skip', input: { name: 'Ann' } },
    next: expect.any(Array) as unknown,
    ticks: [],
  })
  expect(await json('schedules', 'update', 'nightly', '--missed', 'all')).toMatchObject({
    schedule: { missed: 'all', cron: '30 2 * * *' },
  })
  expect((await call('schedules', 'pause', 'nightly', '--reason', 'noise')).out).toContain('noise')
  expect((await call('schedules', 'resume', 'nightly')).code).toBe(0)
  expect((await call('schedules', 'resume', 'nightly')).code).toBe(4)
  const { run } = (await json('schedules', 'run-now', 'nightly')) as { run: string }
  expect(await client.result(run)).toMatchObject({ status: 'succeeded', output: 'Hello, Ann!' })
  expect((await call('schedules', 'create', 'nightly', '--cron', '* * * * *')).code).toBe(2)
  expect((await call('schedules', 'pause', 'nobody')).code).toBe(3)
  expect((await call('schedules', 'frob', 'nightly')).code).toBe(2)
  expect((await call('schedules', 'delete', 'nightly')).out).toBe('nightly deleted\n')
})

test('RAIL-15 triggers are set, shown with what is wrong with them, paused and deleted; doctor tells of one that lacks something', async () => {
  const { call, json, client } = await running()
  expect((await call('triggers')).err).toContain('there is no trigger')
  const spec = { kind: 'github', secrets: ['not_here'], rules: [{ workflow: 'greet' }] }
  const made = await call('triggers', 'set', 'pulls', '--spec', JSON.stringify(spec))
  expect(made.code).toBe(0)
  expect(made.out).toContain('/hooks/pulls')
  expect(made.out).toContain('this server has no secret named not_here')
  expect(await json('triggers', 'try', 'pulls', '--payload', '{"name":"Ann"}')).toMatchObject({
    action: { workflow: 'greet', start: { input: { name: 'Ann' } } },
  })
  expect((await call('triggers', 'try', 'pulls')).code).toBe(2)
  const doctor = await call('doctor')
  expect(doctor.code).toBe(1)
  expect(doctor.out).toContain('own actor')
  expect((await call('triggers', 'pause', 'pulls', '--reason', 'noise')).out).toContain('noise')
  expect((await call('triggers', 'resume', 'pulls')).code).toBe(0)
  expect(await json('triggers')).toMatchObject({ triggers: [{ name: 'pulls', kind: 'github' }] })
  expect((await client.trigger('pulls')).deliveries).toEqual([])
  expect((await call('triggers', 'set', 'pulls')).code).toBe(2)
  expect((await call('triggers', 'show', 'nobody')).code).toBe(3)
  expect((await call('triggers', 'frob', 'pulls')).code).toBe(2)
  expect((await call('triggers', 'delete', 'pulls')).out).toBe('pulls deleted\n')
})

test('RUN-21 orders that were set aside: an empty list is said so, and one is named with what becomes of it', async () => {
  const { call, json } = await running()
  expect((await call('orders')).err).toContain('no order is set aside')
  expect(await json('orders')).toEqual({ orders: [] })
  expect(await call('orders', 'cancel:run_1', '--retry')).toMatchObject({ code: 3 })
  expect(await call('orders', 'cancel:run_1')).toMatchObject({ code: 2 })
  expect(await call('orders', '--drop')).toMatchObject({ code: 2 })
})

test('OPS-03 what people do to runs: pause, resume, signal, approve, cancel, retry, hand back, watch', async () => {
  const { call, client, cwd } = await running()
  const started = await call('start', 'waits', '--id', 'run_mine', '--key', 'k1')
  expect(started).toMatchObject({ code: 0, out: 'run_mine queued\n' })
  await runThat(client, 'run_mine', ({ run }) => run.status === 'waiting')
  expect((await call('pause', 'run_mine', '--reason', 'lunch')).out).toBe('run_mine paused\n')
  expect((await call('show', 'run_mine')).out).toContain('lunch')
  expect((await call('resume', 'run_mine')).code).toBe(0)
  expect((await call('resume', 'run_mine')).code).toBe(4)
  writeFileSync(path.join(cwd, 'payload.json'), '{"answer":42}')
  const watching = leasehold(['watch', 'run_mine'], {
    cwd,
    env: { LEASEHOLD_URL: (await call('config', '--json')).out.match(/http:[^"]+/)?.[0] ?? '' },
  })
  await watching.line('run.started')
  expect((await call('signal', 'run_mine', 'go', '--payload', '@payload.json')).code).toBe(0)
  await runThat(
    client,
    'run_mine',
    ({ run, output }) => run.status === 'succeeded' && JSON.stringify(output) === '{"answer":42}',
  )
  expect(await watching.ended).toBe(0)
  expect(watching.out()).toMatch(/signal go: .*42[\s\S]*run_mine succeeded/)

  await call('start', 'asks', '--id', 'run_asks')
  const { approvals } = await until(async () => {
    const page = await client.approvals()
    return page.approvals.length > 0 && page
  })
  const approval = approvals[0]?.id ?? ''
  expect((await call('approve')).out).toContain('Publish?')
  expect(await call('approve', approval, '--yes', '--deny')).toMatchObject({ code: 2 })
  expect(await call('approve', approval, '--yes', '--by', 'ann')).toMatchObject({
    code: 0,
    out: `${approval} approved by ann\n`,
  })
  expect(await call('approve', approval, '--deny', '--by', 'bob')).toMatchObject({ code: 4 })

  await call('start', 'waits', '--id', 'run_gone')
  expect((await call('cancel', 'run_gone', '--reason', 'not needed')).out).toBe(
    'run_gone canceled\n',
  )
  expect((await call('cancel', 'run_gone')).code).toBe(4)
  const retried = await call('retry', 'run_gone')
  expect(retried).toMatchObject({ code: 0 })
  expect(retried.out).toContain('is the retry of run_gone')

  await call(
    'start',
    'steps',
    '--id',
    'run_long',
    '--input',
    JSON.stringify({
      count: 1,
      file: path.join(cwd, 'long.txt'),
      gate: path.join(cwd, 'gate'),
    }),
  )
  await runThat(client, 'run_long', ({ run }) => run.status === 'running')
  expect((await call('hand-back', 'run_long', '--reason', 'moved')).out).toContain(
    'attempt 1 was handed back',
  )
  await runThat(client, 'run_long', ({ run }) => run.attempt > 1)
})

test('OPS-03 exit codes: 1 failed, 2 usage, 3 not found, 4 conflict, 5 denied, 6 unreachable, 7 timed out', async () => {
  const { call, cwd, url } = await running()
  const failed = await call('start', 'fails', '--wait')
  expect(failed.code).toBe(1)
  expect(failed.err).toContain('it is broken')
  expect(failed.out).toBe('')
  expect((await call('start', 'greet', '--input', 'Ann')).code).toBe(2)
  expect((await call('start', 'greet', '--input', '{"name":""}')).code).toBe(2)
  expect((await call('nonsense')).code).toBe(2)
  expect((await call('runs', '--limit', '0')).code).toBe(2)
  for (const [option, wrong] of [
    ['--limit', 'many'],
    ['--since', 'yesterday'],
    ['--status', 'failed,gone'],
  ])
    expect(await call('runs', option ?? '', wrong ?? '')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/expected|known are/) as unknown,
    })
  expect((await call('show', 'run_none')).code).toBe(3)
  expect((await call('start', 'unheard')).code).toBe(3)
  expect((await call('start', 'waits', '--wait', '200ms')).code).toBe(7)
  expect((await ran(['runs', '--url', 'http://127.0.0.1:9'], { cwd })).code).toBe(6)
  expect((await ran(['doctor', '--url', 'http://127.0.0.1:9'], { cwd })).code).toBe(6)
  expect((await ran(['--help'], { cwd })).code).toBe(0)
  expect((await ran(['work', 'nowhere.js', '--url', url], { cwd })).code).toBe(2)
  expect(
    (
      await ran(
        ['work', path.join(path.dirname(fixture('workflows.js')), 'empty.js'), '--url', url],
        { cwd },
      )
    ).code,
  ).toBe(2)
})

test('OPS-03 a module that cannot be loaded is told by its own words and places, without frames of Node or of ours', async () => {
  const cwd = folder()
  const file = (name: string, text: string): string => {
    writeFileSync(path.join(cwd, name), text)
    return name
  }
  const told = async (name: string): Promise<string> => {
    const { code, err } = await ran(['work', name], { cwd })
    expect(code).toBe(2)
    return err
  }
  const lost = await told(file('lost.mjs', "import 'not-there'\n"))
  expect(lost).toMatch(/Cannot find package 'not-there' imported from .*lost\.mjs\n$/)
  expect(lost).not.toContain('    at ')
  const broken = await told(file('broken.mjs', 'export const x = {\n'))
  expect(broken).toMatch(/SyntaxError: .*; `node --check .*broken\.mjs` shows the place\n$/)
  const thrown = await told(file('throws.mjs', "throw new Error('mine')\n"))
  expect(thrown).toMatch(/Error: mine\n +at .*throws\.mjs:1:7\n$/)
  const stuck = await told(file('stuck.mjs', 'await new Promise(() => {})\n'))
  expect(stuck).toMatch(/stuck\.mjs was never loaded: it awaits something at its top level/)
})

test('SEC-01 a wrong token is denied with exit code 5, also to an executor; the right one is let in', async () => {
  const cwd = folder()
  const { url } = await serve(cwd, {
    LEASEHOLD_TOKEN: 'open sesame',
    LEASEHOLD_EXECUTOR_TOKEN: 'work only',
  })
  expect((await ran(['runs', '--url', url], { cwd })).code).toBe(5)
  expect((await ran(['runs', '--url', url, '--token', 'wrong'], { cwd })).code).toBe(5)
  expect(
    (await ran(['runs', '--url', url], { cwd, env: { LEASEHOLD_TOKEN: 'open sesame' } })).code,
  ).toBe(0)
  const refused = await ran(['work', fixture('workflows.js'), '--url', url, '--token', 'wrong'], {
    cwd,
  })
  expect(refused.code).toBe(5)
  await work(cwd, url, [], { LEASEHOLD_EXECUTOR_TOKEN: 'work only' })
})

test('OPS-04 doctor exits non-zero when a run waits for an executor that nobody runs, and says the command that mends it', async () => {
  const { call, client, executor } = await running()
  executor.process.kill('SIGTERM')
  await executor.process.ended
  await client.start('greet', { name: 'Ann' })
  const { code, out } = await call('doctor')
  expect(code).toBe(1)
  expect(out).toMatch(/wrong queues: 1 runs of greet@1 wait/)
  expect(out).toMatch(/mend: leasehold work /)
})

test('OPS-03 init writes a project that runs, and writes over nothing', async () => {
  const cwd = folder()
  expect((await ran(['init', 'mine'], { cwd })).code).toBe(0)
  expect((await ran(['init', 'mine'], { cwd })).code).toBe(2)
  const project = path.join(cwd, 'mine')
  // called from a checkout, it takes the package from there
  const { dependencies } = JSON.parse(readFileSync(path.join(project, 'package.json'), 'utf8')) as {
    dependencies: { leasehold: string }
  }
  expect(dependencies.leasehold).toBe(`file:${path.resolve(import.meta.dirname, '../..')}`)
  const dev = leasehold(['dev', 'workflows.js', '--port', '0'], { cwd: project })
  const url = (await dev.line('dashboard')).split(/\s+/)[1]?.replace(/\/$/, '') ?? ''
  const greeted = await ran(
    ['start', 'greet', '--input', '{"name":"Ann"}', '--wait', '--url', url],
    { cwd: project },
  )
  expect(greeted).toMatchObject({ code: 0, out: '"Hello, Ann!"\n' })
  const page = await fetch(`${url}/`)
  expect(page.status).toBe(200)
  dev.kill('SIGINT')
  expect(await dev.ended).toBe(0)
})

test('OPS-03 a reader that closes the pipe early ends the command quietly', async () => {
  const { url, cwd, client } = await running()
  await client.startMany(
    'waits',
    Array.from({ length: 200 }, () => ({ input: null })),
  )
  const piped = start(
    'sh',
    [
      '-c',
      `'${process.execPath}' '${path.resolve(import.meta.dirname, '../../dist/cli/main.js')}' runs --limit 200 --json --url ${url} | head -1`,
    ],
    { cwd },
  )
  expect(await piped.ended).toBe(0)
  expect(piped.err()).toBe('')
})

test('OPS-03 what goes into a pipe has no colours, also where CI is set, which picocolors takes for a terminal', async () => {
  const cwd = folder()
  for (const args of [
    ['config'],
    ['--help'],
    ['show', 'run_none', '--url', 'http://127.0.0.1:9'],
  ]) {
    const { out, err } = await ran(args, { cwd, env: { CI: 'true', TERM: 'xterm-256color' } })
    expect(out + err).not.toContain('\u001b')
    expect(out + err).not.toBe('')
  }
})
