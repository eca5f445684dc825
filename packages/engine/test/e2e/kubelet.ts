// What stands between jobs and processes in a cluster, in small: it makes a pod for a job, starts the pod's process when its secret is
// there, shows how that ends, and ends it when its job is deleted.
import { onTestFinished } from 'vitest'
import type { FakeCluster } from '../support/kubernetes.ts'
import type { Process } from './processes.ts'
import { leasehold } from './processes.ts'

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } }
}
interface Container {
  readonly image: string
  readonly args: readonly string[]
  readonly env: readonly Variable[]
}
interface Running {
  readonly process: Process
  exit: number | string | null
}

export interface Kubelet {
  /** The processes of its pods, in the order in which they began. */
  readonly processes: readonly Process[]
  /** Image names that cannot be had. */
  readonly missing: Set<string>
}

const LOOK_MS = 20

export const kubeletOf = (cluster: FakeCluster, cwd: string): Kubelet => {
  const running = new Map<string, Running>()
  const processes: Process[] = []
  const missing = new Set<string>()

  const begin = (name: string, { args, env }: Container): boolean => {
    const found = env.map(({ name: variable, value, valueFrom }) => {
      const secret = cluster.objects.get(`secrets/${valueFrom?.secretKeyRef.name}`) as
        { readonly stringData?: Readonly<Record<string, string>> } | undefined
      return [variable, value ?? secret?.stringData?.[valueFrom?.secretKeyRef.key ?? '']] as const
    })
    if (found.some(([, value]) => value === undefined)) return false
    const process = leasehold(args, {
      cwd,
      env: Object.fromEntries(found) as Record<string, string>,
    })
    const made: Running = { process, exit: null }
    void process.ended.then((exit) => (made.exit = exit))
    processes.push(process)
    running.set(name, made)
    return true
  }

  const look = (): void => {
    for (const [key, job] of cluster.objects) {
      if (!key.startsWith('jobs/')) continue
      const { name, uid, deletionTimestamp } = job.metadata
      const { metadata, spec } = (job.spec?.['template'] ?? {}) as {
        readonly metadata: { readonly labels: Record<string, string> }
        readonly spec: { readonly containers: readonly [Container] }
      }
      const [container] = spec.containers
      const own = running.get(name)
      const pod = cluster.objects.get(`pods/${name}`)
      const podIs = (status: object): void =>
        cluster.put('pods', {
          kind: 'Pod',
          metadata: { name, labels: metadata.labels, ownerReferences: [{ uid }] },
          status,
        })
      if (deletionTimestamp !== undefined) {
        if (own && own.exit === null) own.process.kill('SIGTERM')
        else cluster.remove('jobs', name)
      } else if (!pod) podIs({ phase: 'Pending' })
      else if (!own) {
        const waiting = { reason: 'ErrImagePull' }
        if (missing.has(container.image))
          podIs({ phase: 'Pending', containerStatuses: [{ state: { waiting } }] })
        else if (begin(name, container)) podIs({ phase: 'Running' })
      } else if (own.exit !== null && pod.status?.['phase'] === 'Running') {
        const [type, phase] = own.exit === 0 ? ['Complete', 'Succeeded'] : ['Failed', 'Failed']
        const exitCode = typeof own.exit === 'number' ? own.exit : 137
        podIs({ phase, containerStatuses: [{ state: { terminated: { exitCode } } }] })
        cluster.put('jobs', { ...job, status: { conditions: [{ type, status: 'True' }] } })
      }
    }
  }

  const timer = setInterval(look, LOOK_MS)
  onTestFinished(() => clearInterval(timer))
  return { processes, missing }
}
