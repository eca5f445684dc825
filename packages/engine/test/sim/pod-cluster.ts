// A cluster in a world: an API whose requests and answers get lost, come late or are refused for a while; its controller, which makes
// one pod for a job; and its machines, which start containers late or never, evict them, die with all that runs on them, and say
// late what became of it. Whatever it says has happened; only when it says so is uncertain.
import type {
  KubernetesApi,
  KubernetesObject,
  Manifest,
  Resource,
} from '../../src/executor/pods/kubernetes-api.ts'
import { KubernetesError } from '../../src/executor/pods/kubernetes-api.ts'
import { LAUNCHER } from '../../src/executor/pods/pod-template.ts'
import { Defect } from '../../src/kernel/errors.ts'
import type { Random } from '../../src/kernel/random.ts'
import type { Node, World } from './world.ts'
import { oneOf, pick } from './world.ts'

/** How long a container may take from its signal until it is killed. */
const GRACE_MS = 4_000
/** How late what happened is said at most: less than a launcher waits for it. */
const LATE_MS = 25_000

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
interface Stored {
  readonly kind: Resource
  readonly metadata: Mutable<KubernetesObject['metadata']>
  readonly spec: unknown
  status: Record<string, unknown>
  readonly owner: string | null
  readonly data: Readonly<Record<string, string>>
}

/** What a machine runs for a pod. */
export interface Container {
  /** SIGTERM. */
  tell(): void
  /** Ends it at once. */
  kill(): void
  /** Its exit code, when nothing of it is alive. */
  readonly gone: Promise<number>
}

interface Machine {
  readonly name: string
  up: boolean
  /** It works on and says and hears nothing until then. */
  silentUntil: number
  readonly running: Set<Pod>
}

/** A pod as its machine has it. */
interface Pod {
  readonly stored: Stored
  readonly job: Stored
  readonly machine: Machine
  container: Container | null
  exited: number | null
  /** It is not to be started any more. */
  over: boolean
  told: boolean
  /** It is no more when nothing of it is alive. */
  deleted: boolean
  why: string
  /** When the last of what became of it is said. */
  saidAt: number
}

export interface ClusterOptions {
  readonly world: World
  /** Whether a fault strikes, which counts it. */
  readonly strikes: (odds: number) => boolean
  readonly isOver: () => boolean
  /** Starts what a pod of this job runs, with its token. */
  readonly start: (job: KubernetesObject, token: string) => Container
  /** A launcher asks for the end of a job that is there. */
  readonly removing: (job: KubernetesObject) => void
}

export class SimCluster {
  readonly #options: ClusterOptions
  readonly #world: World
  readonly #random: Random
  readonly #stored = new Map<string, Stored>()
  readonly #pods = new Map<string, Pod>()
  readonly #machines: Machine[]
  /** No container begins meanwhile. */
  waits = false
  /** Jobs that were made after their launcher had been told that they were not. */
  readonly late = new Set<string>()
  #uids = 0
  #awayUntil = 0

  constructor(options: ClusterOptions) {
    this.#options = options
    this.#world = options.world
    this.#random = options.world.chance('cluster')
    this.#machines = ['a', 'b', 'c'].map((name) => ({
      name,
      up: true,
      silentUntil: 0,
      running: new Set(),
    }))
  }

  /** Jobs that are there and have not been said to be over. */
  get unfinished(): readonly KubernetesObject[] {
    return [...this.#stored.values()].filter(
      ({ kind, status }) => kind === 'jobs' && status['conditions'] === undefined,
    )
  }

  /** The API as a process sees it. */
  api(from: Node): KubernetesApi {
    const reach = <T>(act: () => T): Promise<T> => this.#reach(from, act)
    return {
      create: (resource, manifest) => reach(() => this.#create(resource, manifest)),
      get: (resource, name) => reach(() => copied(this.#find(resource, name))),
      list: (resource, selector) =>
        reach(() => ({ version: '1', items: this.#list(resource, selector).map(copied) })),
      watch: () => Promise.reject(new Defect('nobody watches here')),
      logs: () => Promise.resolve(''),
      delete: (resource, name, { uid }) =>
        reach(() => {
          const found = this.#find(resource, name)
          if (found.metadata.uid !== uid)
            throw new KubernetesError('conflict', `${name} is another`)
          if (found.metadata.deletionTimestamp !== undefined) return
          this.#options.removing(copied(found))
          this.#delete(found)
        }),
    }
  }

  // what befalls it

  /** Nothing of the API answers for a while. */
  away(ms: number): void {
    this.#awayUntil = this.#world.now + ms
  }
  /** Somebody deletes a job, whoever made it: it is gone at once, and its pod follows. */
  deleteSome(): boolean {
    const jobs = [...this.#stored.values()].filter(({ kind }) => kind === 'jobs')
    if (jobs.length === 0) return false
    const job = oneOf(this.#random, jobs)
    this.#gone(job)
    for (const pod of this.#podsOf(job)) this.#end(pod, 'its job was deleted')
    return true
  }
  /** A container is told to end, since its machine needs the room. */
  evictSome(): boolean {
    const running = this.#machines.flatMap((machine) => [...machine.running])
    if (running.length === 0) return false
    this.#tell(oneOf(this.#random, running), 'Evicted')
    return true
  }
  /** A machine dies with all that it runs, and comes back later, or is given up and with it what it ran. */
  loseMachine(): boolean {
    const machine = oneOf(this.#random, this.#machines)
    if (!machine.up || machine.running.size === 0) return false
    machine.up = false
    const lost = [...machine.running]
    for (const pod of lost) pod.container?.kill()
    const ms = 3_000 + pick(this.#random, 20_000)
    this.#world.at(this.#world.now + ms, null, () => {
      const isBack = this.#random.next() < 0.6
      machine.up = true
      for (const pod of lost) {
        if (isBack) this.#say(pod, () => this.#ended(pod, 'NodeLost'))
        else this.#collect(pod)
      }
    })
    return true
  }
  /** A machine works on and is not heard of. */
  silence(): boolean {
    const machine = oneOf(this.#random, this.#machines)
    if (machine.running.size === 0) return false
    machine.silentUntil = this.#world.now + 2_000 + pick(this.#random, 15_000)
    return true
  }

  // the API

  async #reach<T>(from: Node, act: () => T): Promise<T> {
    const { strikes } = this.#options
    const world = this.#world
    const unreachable = (why: string): KubernetesError => new KubernetesError('unreachable', why)
    await world.sleep(from, 1 + pick(this.#random, 20))
    if (world.now < this.#awayUntil) throw unreachable('nobody answers')
    if (strikes(0.04)) throw unreachable('it did not arrive')
    if (strikes(0.02)) throw new KubernetesError('busy', 'too many requests')
    if (strikes(0.02)) {
      // it is under way still when its caller has given it up
      world.at(world.now + 200 + pick(this.#random, 3_000), null, () => {
        try {
          const made = act() as Partial<KubernetesObject> | undefined
          const name = made?.metadata?.name
          if (name !== undefined) this.late.add(name)
        } catch (error) {
          if (!(error instanceof KubernetesError)) throw error
        }
      })
      throw unreachable('it timed out')
    }
    const answer = act()
    await world.sleep(from, 1 + pick(this.#random, 20))
    if (strikes(0.05)) throw unreachable('the answer was lost')
    return answer
  }

  #find(resource: Resource, name: string): Stored {
    const found = this.#stored.get(`${resource}/${name}`)
    if (!found) throw new KubernetesError('not_found', `${resource} ${name} is not there`)
    return found
  }

  #list(resource: Resource, selector: string): Stored[] {
    const wanted = selector.split(',').map((term) => term.split('='))
    return [...this.#stored.values()].filter(
      ({ kind, metadata: { labels } }) =>
        kind === resource && wanted.every(([key = '', value]) => labels?.[key] === value),
    )
  }

  #create(resource: Resource, manifest: Manifest): KubernetesObject {
    const { name, labels, annotations, ownerReferences } = manifest['metadata'] as {
      readonly name: string
      readonly labels: Readonly<Record<string, string>>
      readonly annotations?: Readonly<Record<string, string>>
      readonly ownerReferences?: readonly { readonly uid: string }[]
    }
    if (this.#stored.has(`${resource}/${name}`))
      throw new KubernetesError('conflict', `${resource} ${name} is there`)
    const owner = ownerReferences?.[0]?.uid ?? null
    const stored: Stored = {
      kind: resource,
      metadata: {
        name,
        uid: `uid-${++this.#uids}`,
        resourceVersion: '1',
        labels,
        ...(annotations ? { annotations } : {}),
      },
      spec: manifest['spec'],
      status: {},
      owner,
      data: (manifest['stringData'] ?? {}) as Readonly<Record<string, string>>,
    }
    // what is owned by nothing that is there is collected at once
    if (
      owner !== null &&
      ![...this.#stored.values()].some(({ metadata }) => metadata.uid === owner)
    )
      return copied(stored)
    this.#stored.set(`${resource}/${name}`, stored)
    this.#world.say(() => `cluster ${resource} ${name} is made`)
    if (resource === 'jobs') this.#after(50, 500, () => this.#makePod(stored))
    return copied(stored)
  }

  /** In the foreground: what it owns goes before it. */
  #delete(job: Stored): void {
    job.metadata.deletionTimestamp = 'now'
    this.#world.say(() => `cluster job ${job.metadata.name} is deleted`)
    const pods = this.#podsOf(job)
    for (const pod of pods) this.#end(pod, 'its job was deleted')
    if (pods.length === 0) this.#after(10, 200, () => this.#gone(job))
  }

  #gone(job: Stored): void {
    if (!this.#isThere(job)) return
    this.#stored.delete(`${job.kind}/${job.metadata.name}`)
    this.#world.say(() => `cluster job ${job.metadata.name} is gone`)
    for (const [key, { kind, owner }] of this.#stored)
      if (kind === 'secrets' && owner === job.metadata.uid) this.#stored.delete(key)
  }

  #isThere({ kind, metadata }: Stored): boolean {
    return this.#stored.get(`${kind}/${metadata.name}`)?.metadata.uid === metadata.uid
  }

  #podsOf(job: Stored): Pod[] {
    return [...this.#pods.values()].filter((pod) => pod.job === job)
  }

  // its controller

  #makePod(job: Stored): void {
    if (!this.#isThere(job) || job.metadata.deletionTimestamp !== undefined) return
    const up = this.#machines.filter((machine) => machine.up)
    if (up.length === 0) return this.#after(500, 500, () => this.#makePod(job))
    const { template } = job.spec as {
      readonly template: {
        readonly metadata: { readonly labels: Readonly<Record<string, string>> }
        readonly spec: unknown
      }
    }
    const stored: Stored = {
      kind: 'pods',
      metadata: {
        name: `${job.metadata.name}-${this.#uids + 1}`,
        uid: `uid-${++this.#uids}`,
        resourceVersion: '1',
        labels: template.metadata.labels,
      },
      spec: template.spec,
      status: { phase: 'Pending' },
      owner: job.metadata.uid,
      data: {},
    }
    const pod: Pod = {
      stored,
      job,
      machine: oneOf(this.#random, up),
      container: null,
      exited: null,
      over: false,
      told: false,
      deleted: false,
      why: '',
      saidAt: 0,
    }
    this.#stored.set(`pods/${stored.metadata.name}`, stored)
    this.#pods.set(stored.metadata.name, pod)
    const luck = this.#options.isOver() ? 1 : this.#random.next()
    // an image that cannot be had is waited for, for ever or long
    if (luck < 0.05) return
    this.#after(100, luck < 0.15 ? 15_000 : 800, () => this.#begin(pod))
  }

  /** A job is over when its one pod is, or is no more: nothing is tried again by the cluster. */
  #finish(job: Stored, type: 'Complete' | 'Failed', reason: string): void {
    this.#after(20, 400, () => {
      if (!this.#isThere(job) || job.status['conditions'] !== undefined) return
      job.status = { conditions: [{ type, status: 'True', reason }] }
    })
  }

  // its machines

  #begin(pod: Pod): void {
    const { job, machine } = pod
    if (pod.over) return
    const secret = this.#stored.get(`secrets/${job.metadata.name}`)
    const isReady = !this.waits && machine.up && this.#world.now >= machine.silentUntil
    if (!isReady || secret?.owner !== job.metadata.uid)
      return this.#after(300, 300, () => this.#begin(pod))
    const [token = ''] = Object.values(secret.data)
    const container = this.#options.start(copied(job), token)
    pod.container = container
    machine.running.add(pod)
    this.#say(pod, () => {
      if (pod.exited === null) pod.stored.status = statusOf('Running', '', null)
    })
    void container.gone.then((code) => {
      pod.exited = code
      pod.over = true
      machine.running.delete(pod)
      // what a machine did not see it says when it is back, or others say that it is gone
      if (machine.up) this.#say(pod, () => this.#ended(pod, pod.why))
    })
  }

  #ended(pod: Pod, why: string): void {
    const isWell = pod.exited === 0 && why === ''
    pod.stored.status = statusOf(isWell ? 'Succeeded' : 'Failed', why, pod.exited)
    this.#finish(pod.job, isWell ? 'Complete' : 'Failed', why)
    if (pod.deleted) this.#collect(pod)
  }

  /** It is no more, and neither is its container. */
  #collect(pod: Pod): void {
    const { job, stored } = pod
    if (!this.#pods.delete(stored.metadata.name)) return
    pod.over = true
    this.#stored.delete(`pods/${stored.metadata.name}`)
    if (job.metadata.deletionTimestamp === undefined)
      this.#finish(job, 'Failed', 'BackoffLimitExceeded')
    else this.#gone(job)
  }

  /** Asks for the end of a pod. */
  #end(pod: Pod, why: string): void {
    pod.stored.metadata.deletionTimestamp ??= 'now'
    this.#say(pod, () => {
      pod.deleted = true
      if (pod.container !== null && pod.exited === null) return this.#tell(pod, why)
      pod.over = true
      this.#after(10, 300, () => this.#collect(pod))
    })
  }

  #tell(pod: Pod, why: string): void {
    const { container } = pod
    if (pod.told || container === null) return
    pod.told = true
    pod.why = why
    container.tell()
    this.#world.at(this.#world.now + GRACE_MS, null, () => container.kill())
  }

  /** In the order in which it happened, and late. */
  #say(pod: Pod, what: () => void): void {
    const { strikes } = this.#options
    const late = strikes(0.03) ? pick(this.#random, LATE_MS) : 20 + pick(this.#random, 600)
    const heard = Math.max(this.#world.now, pod.machine.silentUntil)
    pod.saidAt = Math.max(pod.saidAt, heard + late)
    this.#world.at(pod.saidAt, null, what)
  }

  #after(least: number, spread: number, what: () => void): void {
    this.#world.at(this.#world.now + least + pick(this.#random, spread), null, what)
  }
}

const statusOf = (
  phase: string,
  reason: string,
  exitCode: number | null,
): Record<string, unknown> => ({
  phase,
  ...(reason === '' ? {} : { reason }),
  ...(exitCode === null ? {} : { containerStatuses: [{ state: { terminated: { exitCode } } }] }),
})

const copied = ({ metadata, spec, status }: Stored): KubernetesObject =>
  structuredClone({ metadata, spec, status })

/** Whose a job is. */
export const launcherOf = ({ metadata: { labels } }: KubernetesObject): string =>
  labels?.[LAUNCHER] ?? ''
