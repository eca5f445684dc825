// A process that plays worlds of two databases for another; a planted bug may be built into it.
import { playShards } from './shard-world.ts'

const answer = (what: object): void => void process.send?.(what)

process.on('message', ({ seed }: { seed: number }) => {
  void playShards(seed).then(answer)
})
