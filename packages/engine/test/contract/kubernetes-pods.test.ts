// The pods of attempts, asked of a server that refuses what the API of a cluster does. The test is its scheduler and its kubelet.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { kubernetesApi } from '../../src/executor/pods/kubernetes-api.ts'
import { kubernetesPods } from '../../src/executor/pods/kubernetes-pods.ts'
import type { PodOrder, Pods } from '../../src/executor/pods/launcher.ts'
import { jobOf, mustBeTemplate, nameOf } from '../../src/executor/pods/pod-template.ts'
import { systemTimers } from '../../src/kernel/timers.ts'
import type { FakeCluster } from '../support/kubernetes.ts'
import { fakeCluster } from '../support/kubernetes.ts'

const TOKEN = 'canary-of-the-cluster'
const GIVEN = {
  metadata: { labels: { team: 'video' } },
  spec: {
    serviceAccountName: 'render',
    terminationGracePeriodSeconds: 60,
    containers: [
      {
        image: 'registry.example/render:1',
        args: ['attempt', 'workflows.js'],
        env: [
          { name: 'RENDER_KEY', value: 'k' },
          { name: 'LEASEHOLD_ATTEMPT_TOKEN', value: 'of somebody else' },
        ],
      },
      { name: 'beside', image: 'proxy' },
    ],
  },
}
const order: PodOrder = {
  label: { session: 'ses_launcher', run: 'run_1', attempt: 3 },
  runner: 'ses_own',
  token: 'lsa1.canary-of-the-attempt',
  startBy: 1_800_000_000_000,
}
let cluster: FakeCluster
const podsOf = (launcher: string): Pods =>
  kubernetesPods({
    api: kubernetesApi(
      { server: cluster.url, namespace: 'work', token: () => TOKEN },
      systemTimers,
    ),
    timers: systemTimers,
    template: mustBeTemplate(GIVEN, 'the template'),
    url: 'https://leasehold.example',
    launcher,
    lookMs: 0,
  })
let pods: Pods
beforeEach(async () => {
  cluster = await fakeCluster(TOKEN)
  pods = podsOf('own_1')
})
afterEach(() => cluster.stop())

const name = nameOf(order.label)
const state = async (): Promise<string> => (await pods.look(order.label)).state
const podIs = (status: object, called = `${name}-x`): void => {
  const { metadata } = cluster.objects.get(`jobs/${name}`) ?? { metadata: { labels: {} } }
  cluster.put('pods', { kind: 'Pod', metadata: { name: called, labels: metadata.labels }, status })
}
const jobIs = (type: string): void =>
  cluster.put('jobs', {
    ...cluster.objects.get(`jobs/${name}`),
    status: { conditions: [{ type, status: 'True', reason: 'BackoffLimitExceeded' }] },
  })

describe('EX-24 RAIL-14 a job for an attempt', () => {
  it('RAIL-14 EX-25 is made from the template, with its token in a secret that goes with it, and nowhere else', async () => {
    await pods.make(order)
    const job = cluster.objects.get(`jobs/${name}`)
    expect(job).toMatchObject({
      metadata: {
        labels: { 'app.kubernetes.io/managed-by': 'leasehold', 'leasehold/launcher': 'own_1' },
        annotations: {
          'leasehold/session': 'ses_launcher',
          'leasehold/run': 'run_1',
          'leasehold/attempt-number': '3',
          'leasehold/runner': 'ses_own',
        },
      },
      spec: {
        backoffLimit: 0,
        template: {
          metadata: { labels: { team: 'video', 'leasehold/launcher': 'own_1' } },
          spec: {
            restartPolicy: 'Never',
            serviceAccountName: 'render',
            terminationGracePeriodSeconds: 60,
            containers: [
              {
                image: 'registry.example/render:1',
                args: ['attempt', 'workflows.js'],
                env: [
                  { name: 'RENDER_KEY', value: 'k' },
                  { name: 'LEASEHOLD_URL', value: 'https://leasehold.example' },
                  { name: 'LEASEHOLD_KILL_LIMIT_MS', value: '60000' },
                  {
                    name: 'LEASEHOLD_ATTEMPT_TOKEN',
                    valueFrom: { secretKeyRef: { name, key: 'token' } },
                  },
                ],
              },
              { name: 'beside' },
            ],
          },
        },
      },
    })
    expect(JSON.stringify(job)).not.toContain('canary-of-the-attempt')
    expect(cluster.objects.get(`secrets/${name}`)).toMatchObject({
      stringData: { token: order.token },
      metadata: { ownerReferences: [{ kind: 'Job', uid: job?.metadata.uid }] },
    })
    // what waits for its secret does not begin before its job is known
    expect(
      cluster.requests.map(({ method, path }) => `${method} ${path.split('/').at(-1)}`),
    ).toEqual(['POST jobs', 'POST secrets'])
  })

  it.each(['cut_after', 'cut', 500, 503, 429] as const)(
    'EX-24 one whose making was answered with %s is made once by repeating it',
    async (fault) => {
      for (const before of [[], ['nothing'] as const]) {
        cluster.faults.length = 0
        // the second time it is the secret's
        for (const _one of before) cluster.faults.push(undefined as never)
        cluster.faults.push(fault)
        await expect(pods.make(order)).rejects.toThrow()
        await pods.make(order)
        expect([...cluster.objects.keys()].sort()).toEqual([`jobs/${name}`, `secrets/${name}`])
        cluster.remove('jobs', name)
      }
    },
  )

  it('EX-24 what the API does not take, and a job of that name that another has made, are refused for good', async () => {
    cluster.faults.push(422)
    await expect(pods.make(order)).rejects.toMatchObject({ name: 'OrderRefused' })
    await podsOf('own_other').make(order)
    await expect(pods.make(order)).rejects.toThrow(/has not made; remove it/)
    await pods.remove({ ...order.label, run: 'run_2' }, order.runner)
    expect(cluster.objects.has(`jobs/${name}`)).toBe(true)
  })

  it('EX-24 RAIL-14 of two stores of which one is a copy of the other, neither removes what the other has made', async () => {
    await podsOf('own_other').make({ ...order, runner: 'ses_of_the_other' })
    await expect(pods.make(order)).rejects.toThrow(/has not made/)
    await pods.remove(order.label, order.runner)
    expect(cluster.objects.get(`jobs/${name}`)?.metadata.deletionTimestamp).toBeUndefined()
    // who has found it where it was left removes exactly it
    await pods.remove(order.label, 'ses_of_the_other')
    expect(cluster.objects.get(`jobs/${name}`)?.metadata.deletionTimestamp).toBeDefined()
  })

  it('EX-24 RAIL-14 is at work as soon as its first container is, though others are still to come', async () => {
    await pods.make(order)
    const beside = { name: 'beside', state: { waiting: { reason: 'ErrImagePull' } } }
    const first = (state: object) => ({
      phase: 'Pending',
      containerStatuses: [beside, { name: 'attempt', state }],
    })
    podIs(first({ waiting: { reason: 'ContainerCreating' } }))
    expect(await state()).toBe('waiting')
    podIs(first({ running: { startedAt: '2026-01-01T00:00:00Z' } }))
    expect(await state()).toBe('running')
    podIs(first({ terminated: { exitCode: 4 } }))
    expect(await state()).toBe('running')
    podIs({ phase: 'Pending', containerStatuses: [{ ...beside, state: { running: {} } }] })
    expect(await state()).toBe('waiting')
  })

  it('EX-24 has ended only when no pod of it is alive, whatever its job says', async () => {
    await pods.make(order)
    expect(await state()).toBe('waiting')
    podIs({
      phase: 'Pending',
      containerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff' } } }],
    })
    expect(await pods.look(order.label)).toEqual({
      state: 'waiting',
      note: `pod ${name}-x, Pending, ImagePullBackOff`,
    })
    podIs({ phase: 'Running' })
    expect(await state()).toBe('running')
    podIs({ phase: 'Unknown' })
    jobIs('Failed')
    expect(await state()).toBe('running')
    podIs({ phase: 'Failed', reason: 'Evicted', message: 'low on memory' })
    expect(await pods.look(order.label)).toEqual({
      state: 'ended',
      note: `job Failed, BackoffLimitExceeded; pod ${name}-x, Failed, Evicted, low on memory`,
    })
    podIs({ phase: 'Running' }, `${name}-y`)
    expect(await state()).toBe('running')
  })

  it('EX-24 RUN-12 says how its process ended', async () => {
    await pods.make(order)
    const terminated = { exitCode: 137, reason: 'OOMKilled', message: 'the last line\n' }
    podIs({ phase: 'Failed', containerStatuses: [{ state: { terminated } }] })
    expect(await pods.look(order.label)).toEqual({
      state: 'ended',
      note: `pod ${name}-x, Failed, exit code 137, OOMKilled, the last line`,
    })
  })

  it('EX-24 is removed as exactly the one that was made, and is there until nothing of it is', async () => {
    await pods.make(order)
    podIs({ phase: 'Running' })
    const uid = cluster.objects.get(`jobs/${name}`)?.metadata.uid
    await pods.remove(order.label, order.runner)
    expect(cluster.requests.at(-1)).toMatchObject({
      method: 'DELETE',
      body: { preconditions: { uid }, propagationPolicy: 'Foreground' },
    })
    expect(await state()).toBe('going')
    await pods.remove(order.label, order.runner)
    expect(cluster.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1)
    // its job is gone by another's hand, its pod is not
    cluster.remove('jobs', name)
    expect(await state()).toBe('going')
    cluster.remove('pods', `${name}-x`)
    expect(await state()).toBe('none')
    await pods.remove(order.label, order.runner)
  })

  it('EX-24 all that is looked at meanwhile is listed together, and an answer is never older than its question', async () => {
    await pods.make(order)
    cluster.requests.length = 0
    const other = { ...order.label, run: 'run_2' }
    expect(
      (await Promise.all([pods.look(order.label), pods.look(other)])).map((it) => it.state),
    ).toEqual(['waiting', 'none'])
    expect(cluster.requests).toHaveLength(2)
    cluster.faults.push(500)
    await expect(pods.look(order.label)).rejects.toThrow(/500/)
    expect(await state()).toBe('waiting')
  })

  it('EX-26 a job of somebody else that has nothing of its own does not hide the others', async () => {
    await podsOf('own_before').make(order)
    const labels = { 'app.kubernetes.io/managed-by': 'leasehold' }
    const metadata = { name: 'of-somebody', labels, annotations: null }
    cluster.put('jobs', { kind: 'Job', metadata })
    expect((await pods.left()).map(({ runner }) => runner)).toEqual([order.runner])
  })

  it('EX-26 what other launchers have made is found by its label, with what has become of it; its own is not', async () => {
    await podsOf('own_before').make(order)
    podIs({ phase: 'Failed' })
    await pods.make({ ...order, label: { ...order.label, run: 'run_2' } })
    const { token: _secret, ...known } = order
    expect(await pods.left()).toEqual([
      { ...known, seen: { state: 'ended', note: `pod ${name}-x, Failed` } },
    ])
  })
})

describe('EX-24 a job template', () => {
  it.each([
    ['nothing', null, 'it has no spec'],
    ['no containers', { spec: {} }, 'spec.containers is undefined'],
    ['an empty list', { spec: { containers: [] } }, 'spec.containers is []'],
    ['no image', { spec: { containers: [{}] } }, 'the first container has no image'],
    [
      'another policy',
      { spec: { containers: [{ image: 'i' }], restartPolicy: 'OnFailure' } },
      'spec.restartPolicy is "OnFailure"',
    ],
    [
      'a grace that is no number',
      { spec: { containers: [{ image: 'i' }], terminationGracePeriodSeconds: '1m' } },
      'spec.terminationGracePeriodSeconds is no number',
    ],
  ])('EX-24 with %s is refused', (_what, given, why) => {
    expect(() => mustBeTemplate(given, 'it')).toThrow(why)
  })

  it('EX-25 what it says itself of the server and the kill limit stands', () => {
    const env = [
      { name: 'LEASEHOLD_URL', value: 'http://inside' },
      { name: 'LEASEHOLD_KILL_LIMIT_MS', valueFrom: {} },
    ]
    const template = mustBeTemplate({ spec: { containers: [{ image: 'i', env }] } }, 'it')
    const job = jobOf(order, template, { launcher: 'own_1', url: 'http://outside' })
    expect(job['spec']).toMatchObject({
      template: { spec: { containers: [{ env: [...env, { name: 'LEASEHOLD_ATTEMPT_TOKEN' }] }] } },
    })
  })
})
