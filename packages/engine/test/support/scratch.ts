// A scratch without a disk: which directories there are, and a removal that a test can break or hold back.
import type { Scratch, ScratchLabel } from '../../src/executor/scratch.ts'

export interface TestScratch extends Scratch {
  readonly directories: Set<string>
  readonly made: ScratchLabel[]
  /** What happens to a removal from here on. */
  failing: Error | Promise<void> | null
}

export const scratchInMemory = (): TestScratch => {
  const it: TestScratch = {
    directories: new Set(),
    made: [],
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
    recover: () => Promise.resolve([]),
  }
  return it
}
