// The client of the Kubernetes API against a server that refuses what the real one does.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type {
  Cluster,
  KubernetesApi,
  Manifest,
  WatchEvent,
} from '../../src/executor/pods/kubernetes-api.ts'
import { inCluster, kubernetesApi } from '../../src/executor/pods/kubernetes-api.ts'
import { systemTimers } from '../../src/kernel/timers.ts'
import type { FakeCluster } from '../support/kubernetes.ts'
import { fakeCluster } from '../support/kubernetes.ts'

const TOKEN = 'canary-of-the-cluster'
let cluster: FakeCluster
let api: KubernetesApi
const reach = (more: Partial<Cluster> = {}): KubernetesApi =>
  kubernetesApi(
    { server: cluster.url, namespace: 'work', token: () => TOKEN, ...more },
    systemTimers,
  )
beforeEach(async () => {
  cluster = await fakeCluster(TOKEN)
  api = reach()
})
afterEach(() => cluster.stop())

const job = (name: string, labels: Record<string, string> = { a: 'b' }): Manifest => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name, labels },
  spec: {
    backoffLimit: 0,
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'it', image: 'i' }] } },
  },
})

it('EX-24 makes a job, reads it, lists it by label, and deletes exactly it with what it owns', async () => {
  const made = await api.create('jobs', job('one'))
  await api.create('jobs', job('two', { a: 'c' }))
  expect(await api.get('jobs', 'one')).toEqual(made)
  const { items, version } = await api.list('jobs', 'a=b')
  expect(items).toEqual([made])
  expect(Number(version)).toBeGreaterThan(Number(made.metadata.resourceVersion))
  await expect(api.delete('jobs', 'one', { uid: 'another' })).rejects.toMatchObject({
    kind: 'conflict',
  })
  await api.delete('jobs', 'one', { uid: made.metadata.uid, graceSeconds: 5 })
  expect(cluster.requests.at(-1)).toEqual({
    method: 'DELETE',
    path: '/apis/batch/v1/namespaces/work/jobs/one',
    body: {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Foreground',
      preconditions: { uid: made.metadata.uid },
      gracePeriodSeconds: 5,
    },
  })
  expect((await api.get('jobs', 'one')).metadata.deletionTimestamp).toBeDefined()
  cluster.remove('jobs', 'one')
  await expect(api.get('jobs', 'one')).rejects.toMatchObject({ kind: 'not_found' })
})

it('EX-24 a job that was made though nobody heard of it is there when the request is repeated', async () => {
  cluster.faults.push('cut_after')
  await expect(api.create('jobs', job('one'))).rejects.toMatchObject({ kind: 'unreachable' })
  await expect(api.create('jobs', job('one'))).rejects.toMatchObject({ kind: 'conflict' })
  expect(await api.get('jobs', 'one')).toMatchObject({ metadata: { labels: { a: 'b' } } })
})

it.each([
  [401, 'unauthorized'],
  [403, 'forbidden'],
  [409, 'conflict'],
  [410, 'gone'],
  [422, 'invalid'],
  [429, 'busy'],
  [500, 'failed'],
  [503, 'failed'],
])('EX-24 an answer of %i is an error of kind %s that says what it said', async (status, kind) => {
  cluster.faults.push(status)
  await expect(api.list('pods', 'a=b')).rejects.toMatchObject({
    name: 'KubernetesError',
    kind,
    message: expect.stringContaining(`${status}: planned`) as string,
  })
})

it('EX-24 who has no good token is unauthorized, and what the API does not take is invalid', async () => {
  await expect(reach({ token: () => 'old' }).get('jobs', 'one')).rejects.toMatchObject({
    kind: 'unauthorized',
  })
  await expect(api.create('jobs', job('No_Name'))).rejects.toMatchObject({ kind: 'invalid' })
  await expect(
    api.create('jobs', { ...job('one'), spec: { template: { spec: {} } } }),
  ).rejects.toMatchObject({ kind: 'invalid' })
})

const SECRET = 'lsa1.canary-of-the-attempt'
const KEPT = Buffer.from(SECRET).toString('base64')
it.each([
  [
    'a refusal',
    422,
    { message: `data: Invalid value: ${SECRET} (${KEPT})` },
    /^POST .*422: data: /,
  ],
  ['a refusal that is no status', 500, { token: KEPT }, /500/],
  ['an object without metadata', 201, { data: { token: KEPT } }, /expected an object/],
  ['what is cut short', 201, `{"data":{"token":"${KEPT}"},"kind":"Sec`, /expected JSON/],
])(
  'EX-24 of a secret nothing is said, whatever the API answers: %s',
  async (_what, status, answer, says) => {
    const server = createServer((_request, response) => {
      response.writeHead(status).end(typeof answer === 'string' ? answer : JSON.stringify(answer))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const secret = { apiVersion: 'v1', kind: 'Secret', stringData: { token: SECRET } }
    try {
      const error: unknown = await reach({ server: `http://127.0.0.1:${port}` })
        .create('secrets', secret)
        .catch((thrown: unknown) => thrown)
      expect(String(error)).not.toContain('canary')
      expect(String(error)).not.toContain(KEPT)
      expect((error as Error).message).toMatch(says)
    } finally {
      server.close()
    }
  },
)

it('EX-24 a connection that is cut is unreachable', async () => {
  cluster.faults.push('cut')
  await expect(api.list('jobs', 'a=b')).rejects.toMatchObject({ kind: 'unreachable' })
})

it('EX-24 a watch hears what changes, goes on from where it was cut, and misses nothing', async () => {
  const { signal } = new AbortController()
  const heard: string[] = []
  const hear = ({ type, object }: WatchEvent): number =>
    heard.push(`${type} ${object.metadata.name}`)
  const { version } = await api.list('pods', 'a=b')
  const first = api.watch('pods', { selector: 'a=b', version, signal }, hear)
  await vi.waitFor(() => expect(cluster.watchers()).toBe(1))
  cluster.put('pods', { metadata: { name: 'p1', labels: { a: 'b' } } })
  cluster.put('pods', { metadata: { name: 'other', labels: { a: 'c' } } })
  await vi.waitFor(() => expect(heard).toEqual(['ADDED p1']))
  cluster.cutWatches()
  const from = await first
  cluster.put('pods', { metadata: { name: 'p1' }, status: { phase: 'Running — läuft' } })
  cluster.remove('pods', 'p1')
  const stop = new AbortController()
  const second = api.watch('pods', { selector: 'a=b', version: from, signal: stop.signal }, hear)
  await vi.waitFor(() => expect(heard).toEqual(['ADDED p1', 'MODIFIED p1', 'DELETED p1']))
  stop.abort()
  await second
  await vi.waitFor(() => expect(cluster.watchers()).toBe(0))
})

it('EX-24 a watch from a version that the cluster has forgotten is gone', async () => {
  const { signal } = new AbortController()
  const { version } = await api.list('pods', 'a=b')
  cluster.cutWatches('gone')
  const watch = api.watch('pods', { selector: 'a=b', version, signal }, () => undefined)
  await expect(watch).rejects.toMatchObject({ kind: 'gone' })
})

it('EX-24 reads what a pod has printed', async () => {
  cluster.put('pods', { metadata: { name: 'p1' } })
  expect(await api.logs('p1', 1_000)).toBe('the last of its lines\n')
})

it('EX-24 in a pod it knows the cluster by its service account, with the token as it is now', () => {
  let token = 'first\n'
  const found = inCluster(
    { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' },
    (file) => (file.endsWith('/token') ? token : file.endsWith('/namespace') ? 'work\n' : 'PEM'),
  )
  expect(found).toMatchObject({ server: 'https://[fd00::1]:6443', namespace: 'work', ca: 'PEM' })
  token = 'second\n'
  expect(found.token()).toBe('second')
  expect(() => inCluster({})).toThrow('KUBERNETES_SERVICE_HOST is not set')
})
