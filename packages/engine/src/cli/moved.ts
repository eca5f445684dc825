// How commands that change a run tell what came of it.
import type { Call } from './call.ts'
import { exit } from './exit.ts'

export const tellMoved = (
  { out, options }: Pick<Call, 'out' | 'options'>,
  answer: { readonly run: string; readonly status: string },
): number => {
  if (options.json) out.json(answer)
  else out.line(`${answer.run} ${answer.status}`)
  return exit.ok
}
