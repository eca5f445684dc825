// Processes without a host: what drives an attempt runs in this very process, behind the channel that a real one has, and
// dies, stalls or leaves something behind when it is told to.
import type { FromBody, ToBody } from '../executor/processes/body-protocol.ts'
import { serveBody } from '../executor/processes/body.ts'
import type { AnyWorkflow } from '../executor/authoring/context.ts'
import type { AroundStep } from '../executor/authoring/environment.ts'
import type {
  ProcessHears,
  ProcessLabel,
  ProcessOrder,
  Processes,
} from '../executor/processes/processes.ts'
import type { Ports } from '../kernel/ports.ts'

export interface FakeProcess {
  readonly pid: number
  readonly began: string
  readonly order: ProcessOrder
  /** Members of its group that are alive: the leader first. */
  readonly members: Set<string>
  readonly signals: string[]
  /** What its executor has said to it. */
  readonly heard: ToBody[]
  /** Whether SIGTERM ends it. Default true. */
  heeds: boolean
  /** Hears and says nothing: its loop is busy. */
  stalled: boolean
  /** Whether what it prints is read. */
  flowing: boolean
  flow(on: boolean): void
  /** Prints a piece of text; what is not read yet comes when it is. */
  print(text: string, source?: 'stdout' | 'stderr'): void
  /** The leader exits; what else is of its group lives on. */
  exit(how: string): void
}

export interface ProcessesInMemory extends Processes {
  readonly all: FakeProcess[]
  /** A process of this host that nobody here has started. */
  stray(pid: number, began: string, label: ProcessLabel): FakeProcess
}

const copied = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

/** Processes that drive these workflows; `first` is the number of the first. */
export const processesInMemory = (
  workflows: readonly AnyWorkflow[],
  ports: Ports,
  { aroundStep, first = 100 }: { readonly aroundStep?: AroundStep; readonly first?: number } = {},
): ProcessesInMemory => {
  const all: FakeProcess[] = []
  const make = (
    pid: number,
    began: string,
    order: ProcessOrder,
    exited: (how: string) => void,
    printed: ProcessHears['printed'] = () => undefined,
  ): FakeProcess => {
    const unread: { source: 'stdout' | 'stderr'; text: string }[] = []
    const made: FakeProcess = {
      pid,
      began,
      order,
      members: new Set(['leader']),
      signals: [],
      heard: [],
      heeds: true,
      stalled: false,
      flowing: true,
      print(text, source = 'stdout') {
        unread.push({ source, text })
        made.flow(made.flowing)
      },
      flow(on) {
        made.flowing = on
        while (made.flowing) {
          const next = unread.shift()
          if (!next) return
          printed(next.source, next.text)
        }
      },
      exit(how) {
        if (!made.members.delete('leader')) return
        exited(how)
        for (const source of ['stdout', 'stderr'] as const) printed(source, null)
      },
    }
    all.push(made)
    return made
  }
  const found = (pid: number, began: string | null): FakeProcess | undefined =>
    all.find((each) => each.pid === pid && each.began === began && each.members.size > 0)
  return {
    all,
    stray: (pid, began, label) =>
      make(
        pid,
        began,
        { label, workflow: '', version: '', env: [], memoryMb: null, sandbox: null },
        () => undefined,
      ),
    // nothing here is kept from anything, so that a workflow that wants a sandbox is tested like any other
    whyNoSandbox: () => Promise.resolve(null),
    spawn(order, hears) {
      const { timers, time } = ports
      const pid = first + all.length
      const it = make(
        pid,
        String(time.now()),
        order,
        (how) => timers.soon(() => hears.exited(how)),
        hears.printed,
      )
      const isUp = (): boolean => it.members.has('leader')
      const say = (message: FromBody): void => {
        if (isUp() && !it.stalled) timers.soon(() => hears.message(copied(message)))
      }
      const hear = serveBody(
        workflows,
        ports,
        { send: say, end: () => timers.soon(() => it.exit('its process exited with 0')) },
        aroundStep,
      )
      say({ kind: 'loaded' })
      return Promise.resolve({
        group: { leader: { pid, began: it.began }, label: order.label },
        send(message) {
          it.heard.push(message)
          timers.soon(() => {
            if (isUp() && !it.stalled) hear(copied(message))
          })
        },
        flow: (on) => it.flow(on),
        leaveOutput: () => undefined,
      })
    },
    isAlive: ({ leader }) => Promise.resolve(found(leader.pid, leader.began) !== undefined),
    signal({ leader }, signal) {
      const it = found(leader.pid, leader.began)
      it?.signals.push(signal)
      if (it && (signal === 'SIGKILL' || it.heeds)) {
        for (const member of it.members) if (member !== 'leader') it.members.delete(member)
        it.exit(`its process was ended by ${signal}`)
      }
      return Promise.resolve()
    },
  }
}
