// A process that plays chunks of worlds for another; a planted bug may be built into it.
import { playChunk } from './run.ts'

const answer = (what: object): void => void process.send?.(what)

process.on('message', ({ seed, chunk }: { seed: number; chunk: number }) => {
  void playChunk(seed, chunk).then(answer)
})
