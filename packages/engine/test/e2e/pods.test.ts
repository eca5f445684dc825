// Attempts in pods, with real processes: the executor that starts them, the program that they run, and a cluster of the test's own.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import { fakeCluster } from '../support/kubernetes.ts'
import { kubeletOf } from './kubelet.ts'
import { CALM, fixture, folder, leasehold, ran, runThat, serve, until } from './processes.ts'

const TOKEN = 'canary-of-the-cluster'
const EXECUTOR = 'canary-of-the-executors'

const place = async () => {
  const cwd = folder()
  const all = 'canary-of-the-server'
  const { url, process: server } = await serve(cwd, {
    ...CALM,
    LEASEHOLD_TOKEN: all,
    LEASEHOLD_EXECUTOR_TOKEN: EXECUTOR,
  })
  const client = connect({ url, actor: 'test', token: all })
  const cluster = await fakeCluster(TOKEN)
  onTestFinished(() => cluster.stop())
  const template = path.join(cwd, 'pod.json')
  const containers = [{ image: 'render', args: ['attempt', fixture('podded.js')] }]
  writeFileSync(template, JSON.stringify({ spec: { containers } }))
  const env = { LEASEHOLD_EXECUTOR_TOKEN: EXECUTOR, LEASEHOLD_CLUSTER_TOKEN: TOKEN }
  const args = ['--job-template', template, '--cluster', cluster.url, '--cluster-namespace', 'work']
  const launch = async () => {
    const made = leasehold(['work', fixture('podded.js'), '--url', url, ...args], { cwd, env })
    await made.line('works at')
    return made
  }
  const file = path.join(cwd, 'lines')
  const gate = path.join(cwd, 'gate')
  const lines = (): string[] =>
    existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
  return {
    cwd,
    client,
    server,
    cluster,
    launch,
    file,
    gate,
    lines,
    kubelet: kubeletOf(cluster, cwd),
  }
}

test('EX-24 EX-25 RAIL-14 an attempt is driven by a pod of its own to its end, and nothing is left of it; its token is in its secret alone', async () => {
  const { client, server, cluster, launch, file, gate, lines, kubelet } = await place()
  const launcher = await launch()
  const { id } = await client.start('podded', { file, gate })
  await until(() => lines().length === 1)
  const [own] = kubelet.processes
  expect(lines()).toEqual([`${own?.pid} 1`])
  const secret = [...cluster.objects.values()].find(({ kind }) => kind === 'Secret') as unknown as {
    stringData: { token: string }
  }
  writeFileSync(gate, '')

  const { output } = await runThat(client, id, ({ run }) => run.status === 'succeeded')

  const { token } = secret.stringData
  expect(output).toEqual({ first: 1, second: 1, token })
  expect(await own?.ended).toBe(0)
  await until(() => cluster.objects.size === 0)
  const jobs = cluster.requests.filter(({ path: at }) => !at.endsWith('/secrets'))
  expect(JSON.stringify(jobs)).not.toContain(token)
  for (const { out, err } of [server, launcher, ...kubelet.processes]) {
    expect(out() + err()).not.toContain(token)
    expect(out() + err()).not.toContain(TOKEN)
  }
})

test('EX-26 RAIL-14 an attempt in its pod goes on when its launcher is killed and another one starts, and is driven once', async () => {
  const { client, cluster, launch, file, gate, lines, kubelet } = await place()
  const first = await launch()
  const { id } = await client.start('podded', { file, gate })
  await until(() => lines().length === 1)
  first.kill('SIGKILL')
  await first.ended
  await launch()
  writeFileSync(gate, '')
  const { run } = await runThat(client, id, (detail) => detail.run.status === 'succeeded')
  expect(run.attempt).toBe(1)
  expect(await kubelet.processes[0]?.ended).toBe(0)
  expect(kubelet.processes).toHaveLength(1)
  expect(cluster.objects.size).toBeGreaterThan(0)
})

test('RUN-06 EX-24 a pod that is killed is seen, and its run goes on in another one, long before its lease lapses', async () => {
  const { client, launch, file, gate, lines, kubelet } = await place()
  await launch()
  const { id } = await client.start('podded', { file, gate })
  await until(() => lines().length === 1)
  kubelet.processes[0]?.kill('SIGKILL')
  await until(() => lines().length === 2)
  writeFileSync(gate, '')
  const { output, attempts } = await runThat(client, id, ({ run }) => run.status === 'succeeded')
  expect(output).toMatchObject({ first: 1, second: 2 })
  expect(attempts[0]).toMatchObject({
    end: 'lost',
    note: expect.stringContaining('exit code 137') as string,
  })
})

test('EX-17 EX-24 a launcher that is told to stop before its pod can begin hands the run back at once, and removes the pod', async () => {
  const { client, cluster, launch, file, gate, kubelet } = await place()
  kubelet.missing.add('render')
  const launcher = await launch()
  const { id } = await client.start('podded', { file, gate })
  await until(() => [...cluster.objects.values()].some(({ kind }) => kind === 'Pod'))
  launcher.kill('SIGTERM')
  expect(await launcher.ended).toBe(0)
  const { run } = await client.get(id)
  expect(run).toMatchObject({ status: 'queued', attempt: 1 })
  await until(() => cluster.objects.size === 0)
})

test('EX-20 EX-24 a template that cannot be used is refused before anything starts', async () => {
  const cwd = folder()
  const template = path.join(cwd, 'pod.json')
  const given = (spec: object): void => writeFileSync(template, JSON.stringify({ spec }))
  const args = ['work', fixture('podded.js'), '--job-template', template]
  const elsewhere = ['--cluster', 'http://127.0.0.1:9']
  given({})
  const empty = await ran([...args, ...elsewhere], { cwd })
  expect(empty.code).not.toBe(0)
  expect(empty.err).toContain('spec.containers is undefined')
  const containers = [{ image: 'render' }]
  given({ containers, terminationGracePeriodSeconds: 20 })
  expect((await ran([...args, ...elsewhere], { cwd })).err).toContain('killed after 20 s')
  given({ containers })
  expect((await ran(args, { cwd })).err).toContain('name its API with --cluster')
  const without = await ran(args.slice(0, 2), { cwd })
  expect(without.err).toContain('podded is to run in a Kubernetes job')
})
