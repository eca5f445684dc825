// A process that plays worlds of spawners for another; a planted bug may be built into it.
import { playSpawners } from './spawn-world.ts'

const answer = (what: object): void => void process.send?.(what)

process.on('message', ({ seed }: { seed: number }) => {
  void playSpawners(seed).then(answer)
})
