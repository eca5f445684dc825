// A process that plays worlds of pods for another; a planted bug may be built into it.
import { playPods } from './pod-world.ts'

const answer = (what: object): void => void process.send?.(what)

process.on('message', ({ seed }: { seed: number }) => {
  void playPods(seed).then(answer)
})
