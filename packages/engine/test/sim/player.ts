// A process that plays worlds for another; a planted bug may be built into it.
import type { Asked } from './crash-points.ts'
import { playAsked } from './crash-points.ts'
import { playChunk } from './run.ts'

const answer = (what: object): void => void process.send?.(what)

process.on('message', (asked: { readonly seed: number; readonly chunk: number } | Asked) => {
  if ('scenario' in asked) void playAsked(asked).then(answer)
  else void playChunk(asked.seed, asked.chunk).then(answer)
})
