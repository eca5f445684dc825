// The pods of attempts in a Kubernetes cluster: each is the one pod of a job whose name tells the attempt, so that a repeat of what got
// no answer finds the first. All that is looked at is listed together, once a second while anybody asks.
import type { Timers } from '../../kernel/timers.ts'
import { sleep } from '../../kernel/timers.ts'
import type { KubernetesApi, KubernetesObject, Manifest, Resource } from './kubernetes-api.ts'
import { KubernetesError } from './kubernetes-api.ts'
import type { LeftPod, PodLabel, PodOrder, Pods, PodSeen } from './launcher.ts'
import { OrderRefused } from './launcher.ts'
import type { PodTemplate } from './pod-template.ts'
import {
  ATTEMPT,
  jobOf,
  labelsOf,
  LAUNCHER,
  MANAGED,
  nameOf,
  orderOf,
  secretOf,
} from './pod-template.ts'

export interface KubernetesPodsOptions {
  readonly api: KubernetesApi
  readonly timers: Timers
  readonly template: PodTemplate
  /** Where a pod finds the server. */
  readonly url: string
  /** Tells this launcher's jobs from those of others. */
  readonly launcher: string
  /** How often the cluster is asked, in milliseconds. Default 1 s. */
  readonly lookMs?: number
}

const LOOK_MS = 1_000
const NOTE_MAX = 1_000

interface Listed {
  readonly jobs: readonly KubernetesObject[]
  readonly pods: readonly KubernetesObject[]
}

type Shape = Readonly<Record<string, unknown>>
const shapeOf = (value: unknown): Shape =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Shape) : {}
const listOf = (value: unknown): readonly Shape[] =>
  Array.isArray(value) ? value.map(shapeOf) : []
const numberOf = (value: unknown): string => (typeof value === 'number' ? `${value}` : '')
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export const kubernetesPods = (options: KubernetesPodsOptions): Pods => {
  const { api, timers, template, url, launcher, lookMs = LOOK_MS } = options
  let next: Promise<Listed> | null = null

  const list = async (selector: string): Promise<Listed> => {
    // pods after jobs: what a job that is gone has left is seen
    const jobs = (await api.list('jobs', selector)).items
    return { jobs, pods: (await api.list('pods', selector)).items }
  }
  /** A list that begins after the question, one for all who ask meanwhile. */
  const listed = (): Promise<Listed> => {
    next ??= sleep(timers, lookMs).then(() => {
      next = null
      return list(`${MANAGED}=leasehold,${LAUNCHER}=${launcher}`)
    })
    return next
  }

  /** The object of this name, made now or by an earlier request of ours. */
  const once = async (
    resource: Resource,
    label: PodLabel,
    what: Manifest,
  ): Promise<KubernetesObject> => {
    try {
      return await api.create(resource, what)
    } catch (error) {
      if (!(error instanceof KubernetesError)) throw error
      if (error.kind === 'invalid') throw new OrderRefused(error.message, { cause: error })
      if (error.kind !== 'conflict') throw error
    }
    const found = await api.get(resource, nameOf(label))
    if (hasAll(found, Object.entries(labelsOf(label, launcher)))) return found
    throw new OrderRefused(
      `there is a ${resource.slice(0, -1)} ${nameOf(label)} that this executor has not made; remove it`,
    )
  }

  return {
    async make(order: PodOrder) {
      const job = await once('jobs', order.label, jobOf(order, template, { launcher, url }))
      await once('secrets', order.label, secretOf(order, launcher, job))
    },

    async look(label) {
      const { jobs, pods } = await listed()
      const labels = Object.entries(labelsOf(label, launcher))
      const mine = (object: KubernetesObject): boolean => hasAll(object, labels)
      return seenOf(jobs.find(mine), pods.filter(mine))
    },

    async remove(label, runner) {
      try {
        const job = await api.get('jobs', nameOf(label))
        const { deletionTimestamp, uid } = job.metadata
        // of two stores of which one is a copy of the other, each has this attempt of this run; the runner is one's alone
        if (deletionTimestamp !== undefined || orderOf(job)?.runner !== runner) return
        await api.delete('jobs', nameOf(label), { uid })
      } catch (error) {
        // it is gone, or it is another by now
        const { kind } = error as KubernetesError
        if (kind !== 'not_found' && kind !== 'conflict') throw error
      }
    },

    async left() {
      const { jobs, pods } = await list(`${MANAGED}=leasehold`)
      return jobs.flatMap((job): LeftPod[] => {
        const order = orderOf(job)
        const labels = job.metadata.labels ?? {}
        if (order === null || labels[LAUNCHER] === launcher) return []
        const its = pods.filter((pod) => pod.metadata.labels?.[ATTEMPT] === labels[ATTEMPT])
        return [{ ...order, seen: seenOf(job, its) }]
      })
    },
  }
}

const hasAll = (
  { metadata: { labels } }: KubernetesObject,
  wanted: readonly (readonly [string, string])[],
): boolean => wanted.every(([key, value]) => labels?.[key] === value)

/** What a job and its pods come to. */
export const seenOf = (
  job: KubernetesObject | undefined,
  pods: readonly KubernetesObject[],
): PodSeen => {
  const first = firstOf(job)
  const phases = pods.map(({ status }) => (hasBegun(status, first) ? 'Running' : phaseOf(status)))
  const note = noteOf(job, pods)
  // a phase that says nothing of its end is no proof of it
  const alive = phases.filter((phase) => phase !== 'Succeeded' && phase !== 'Failed')
  if (alive.length > 0) {
    if (job === undefined || job.metadata.deletionTimestamp !== undefined)
      return { state: 'going', note }
    return {
      state: alive.every((phase) => phase === 'Pending' || phase === '') ? 'waiting' : 'running',
      note,
    }
  }
  if (job === undefined) return { state: 'none', note }
  if (pods.length > 0 || conditionOf(job) !== null) return { state: 'ended', note }
  return { state: job.metadata.deletionTimestamp === undefined ? 'waiting' : 'going', note }
}

const phaseOf = (status: unknown): string => textOf(shapeOf(status)['phase'])

/** The container of a job's pods that drives the attempt, by name; '' where that is not to be read. */
const firstOf = (job: KubernetesObject | undefined): string => {
  const template = shapeOf(shapeOf(job?.spec)['template'])
  return textOf(listOf(shapeOf(template['spec'])['containers'])[0]?.['name'])
}

/** A pod is `Pending` until all of its containers are there: the one that drives the attempt may be at work before the others. */
const hasBegun = (status: unknown, first: string): boolean => {
  const { phase, containerStatuses } = shapeOf(status)
  if (phase !== 'Pending' && phase !== undefined) return false
  return listOf(containerStatuses).some(({ name, state }) => {
    const { running, terminated } = shapeOf(state)
    return (first === '' || name === first) && (running !== undefined || terminated !== undefined)
  })
}

/** How a job says that it is over. */
const conditionOf = (job: KubernetesObject): Shape | null =>
  listOf(shapeOf(job.status)['conditions']).find(
    ({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True',
  ) ?? null

/** What is known of it, in words. */
const noteOf = (job: KubernetesObject | undefined, pods: readonly KubernetesObject[]): string => {
  const said = pods.map((pod) => {
    const { phase, reason, message, containerStatuses } = shapeOf(pod.status)
    const states = listOf(containerStatuses).flatMap(({ state }) => {
      const { waiting, terminated } = shapeOf(state)
      const { exitCode, signal, ...how } = shapeOf(terminated ?? waiting)
      return [
        ...(exitCode === undefined ? [] : [`exit code ${numberOf(exitCode)}`]),
        ...(signal === undefined ? [] : [`signal ${numberOf(signal)}`]),
        textOf(how['reason']),
        textOf(how['message']).trim(),
      ]
    })
    return [`pod ${pod.metadata.name}`, textOf(phase), textOf(reason), textOf(message), ...states]
  })
  const over = job && conditionOf(job)
  const ofJob = job
    ? over
      ? [[`job ${textOf(over['type'])}`, textOf(over['reason']), textOf(over['message'])]]
      : []
    : [['its job is gone']]
  const all = [...ofJob, ...said].map((parts) => parts.filter((each) => each !== '').join(', '))
  return (all.length === 0 ? 'no pod has been made for its job' : all.join('; ')).slice(0, NOTE_MAX)
}
