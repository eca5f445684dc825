// Pods without a cluster: each is there when it is made, begins and dies when a test says so, and runs what `leasehold attempt` runs,
// in this process, over the routes of the server.
import { attemptPort } from '../../src/client/attempt-port.ts'
import type { Fetch } from '../../src/client/call.ts'
import { httpLaunchPort } from '../../src/client/launch-port.ts'
import type { AnyWorkflow } from '../../src/executor/authoring/context.ts'
import type { Executor } from '../../src/executor/executor.ts'
import { makeExecutor } from '../../src/executor/executor.ts'
import type {
  Launcher,
  LeftPod,
  PodOrder,
  Pods,
  PodSeen,
} from '../../src/executor/pods/launcher.ts'
import { OrderRefused } from '../../src/executor/pods/launcher.ts'
import { inside } from '../../src/executor/authoring/workflow.ts'
import { readAttemptToken } from '../../src/kernel/attempt-token.ts'
import { mintIds } from '../../src/kernel/ids.ts'
import { noLog } from '../../src/kernel/log.ts'
import type { Ports } from '../../src/kernel/ports.ts'
import { seededRandom } from '../../src/kernel/random.ts'
import { sleep } from '../../src/kernel/timers.ts'
import { makeHandler } from '../../src/orchestrator/http/handler.ts'
import type { TestStore } from './store.ts'

export interface FakePod {
  readonly order: PodOrder
  seen: PodSeen
  /** What its process could not do. */
  refused: string | null
  executor: Executor | null
  /** Its container begins. */
  begin(): void
  /** It is told to end, and does when it has stopped. */
  tell(): Promise<void>
  /** It is gone at once: its process says nothing more, and `note` is what is seen of it. */
  die(note: string): void
}

export interface PodsInMemory extends Pods {
  readonly all: FakePod[]
  /** How often it was asked to make, look at or remove one. */
  readonly asked: { make: number; look: number; remove: number }
  /** What becomes of the next requests to make one: nothing, done without an answer, or a no that is final. */
  readonly faults: ('before' | 'after' | 'refused')[]
  /** Whether a pod begins as soon as it is made. Default false: a test begins it. */
  begins: boolean
  /** Nothing of the cluster answers. */
  away: boolean
  /** Whether a pod that is removed ends by itself. Default true. */
  heeds: boolean
  others: LeftPod[]
  readonly removed: string[]
}

/** Pods that drive these workflows on a test store, and the launcher that starts them. */
export const podsOn = (
  t: TestStore,
  workflows: readonly AnyWorkflow[],
): { readonly pods: PodsInMemory; readonly launcher: Launcher } => {
  const { time } = t.clock
  const timers = t.clock.timers()
  const random = seededRandom(11)
  const ports: Ports = { time, timers, random, ids: mintIds(time, random), log: noLog }
  const handler = makeHandler(t.engine, { tokens: [] })
  const fetch: Fetch = (url, init) => handler.fetch(new Request(url, init))
  const url = 'http://localhost'
  const pods: PodsInMemory = {
    all: [],
    asked: { make: 0, look: 0, remove: 0 },
    faults: [],
    begins: false,
    away: false,
    heeds: true,
    others: [],
    removed: [],
    make(order) {
      pods.asked.make += 1
      const fault = pods.faults.shift()
      if (fault === 'refused') return Promise.reject(new OrderRefused('no such image name'))
      if (pods.away || fault === 'before') return Promise.reject(new Error('no answer'))
      if (find(order.label) === undefined) {
        const pod = podOf(order)
        pods.all.push(pod)
        if (pods.begins) pod.begin()
      }
      return fault === 'after' ? Promise.reject(new Error('no answer')) : Promise.resolve()
    },
    async look(label) {
      pods.asked.look += 1
      await sleep(timers, 1_000)
      if (pods.away) throw new Error('no answer')
      return find(label)?.seen ?? { state: 'none', note: 'its job is gone' }
    },
    remove(label, _runner) {
      pods.asked.remove += 1
      if (pods.away) return Promise.reject(new Error('no answer'))
      pods.removed.push(`${label.run}#${label.attempt}`)
      pods.others = pods.others.filter((each) => each.label.run !== label.run)
      const pod = find(label)
      if (!pod || pod.seen.state === 'ended') return Promise.resolve()
      pod.seen = { state: 'going', note: 'it is being removed' }
      if (pods.heeds) void pod.tell()
      return Promise.resolve()
    },
    left: () => (pods.away ? Promise.reject(new Error('no answer')) : Promise.resolve(pods.others)),
  }
  const find = ({ run, attempt }: PodOrder['label']): FakePod | undefined =>
    pods.all.find(({ order: { label } }) => label.run === run && label.attempt === attempt)
  const podOf = (order: PodOrder): FakePod => {
    let dead = false
    const pod: FakePod = {
      order,
      seen: { state: 'waiting', note: 'pod p, Pending, ErrImagePull' },
      refused: null,
      executor: null,
      begin() {
        if (dead) throw new Error('it is gone')
        pod.seen = { state: 'running', note: 'pod p, Running' }
        const grant = readAttemptToken(order.token)
        if (!grant) throw new Error('it has no token')
        const over = (note: string): void => {
          if (!dead) pod.seen = { state: 'ended', note }
        }
        const executor = makeExecutor({
          port: attemptPort(
            grant,
            {
              url,
              token: order.token,
              ports,
              fetch: (at, init) => (dead ? new Promise(() => undefined) : fetch(at, init)),
            },
            {
              settled: () => void executor.stop().then(() => over('pod p, Succeeded, exit code 0')),
              refused(message) {
                pod.refused = message
                void executor.stop().then(() => over('pod p, Failed, exit code 4'))
              },
            },
          ),
          ports,
          workflows: workflows.map(inside),
          session: grant.session,
          slots: { default: 1 },
        })
        pod.executor = executor
        void executor.start()
      },
      async tell() {
        await pod.executor?.stop()
        pod.die(pod.seen.state === 'going' ? 'its job is gone' : 'pod p, Failed, exit code 143')
      },
      die(note) {
        dead = true
        pod.seen = { state: pod.seen.state === 'going' ? 'none' : 'ended', note }
      },
    }
    return pod
  }
  const { grant, exited } = httpLaunchPort({ url, token: null, actor: 'launcher', fetch, timers })
  return { pods, launcher: { pods, grant, exited } }
}
