// A scratch without a disk: which directories there are, and a removal that a test can break or hold back.
import type {
  HeldNote,
  LeftProcess,
  Scratch,
  ScratchLabel,
} from '../../src/executor/preparing/scratch.ts'

export interface TestScratch extends Scratch {
  readonly directories: Set<string>
  readonly made: ScratchLabel[]
  readonly processes: Map<string, LeftProcess>
  readonly notes: Map<string, { label: ScratchLabel; note: HeldNote }>
  /** What happens to a removal from here on. */
  failing: Error | Promise<void> | null
}

export const scratchInMemory = (): TestScratch => {
  const it: TestScratch = {
    directories: new Set(),
    made: [],
    notes: new Map(),
    processes: new Map(),
    failing: null,
    make(label) {
      const path = `/scratch/${label.session}/${label.run}.${label.attempt}`
      it.made.push(label)
      it.directories.add(path)
      return Promise.resolve(path)
    },
    async remove(directory) {
      if (it.failing instanceof Error) throw it.failing
      if (it.failing) await it.failing
      it.directories.delete(directory)
    },
    note(label, note) {
      it.notes.set(`${label.run}.${label.attempt}`, { label, note })
      return Promise.resolve()
    },
    forget(label) {
      it.notes.delete(`${label.run}.${label.attempt}`)
      return Promise.resolve()
    },
    noteProcess(label, leader) {
      it.processes.set(`${label.run}.${label.attempt}`, { label, leader })
      return Promise.resolve()
    },
    forgetProcess(label) {
      it.processes.delete(`${label.run}.${label.attempt}`)
      return Promise.resolve()
    },
    async recover(session, end) {
      const held = [...it.notes.values()].filter(({ label }) => label.session !== session)
      const alive: LeftProcess[] = []
      for (const [key, left] of it.processes)
        if (left.label.session !== session) {
          if (await end(left)) it.processes.delete(key)
          else alive.push(left)
        }
      return { removed: [], held, alive }
    },
  }
  return it
}
