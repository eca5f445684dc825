// The handler of an engine inside one process, up to its close: a close ends what waits and is over when nothing is in
// flight any more, so that no request meets a store that is closed; what is asked later is refused.
import { codes } from '../kernel/codes.ts'
import { PROBLEM_TYPE, problemOf } from '../protocol/problem.ts'
import type { Handler } from '../orchestrator/http/handler.ts'

/** Said to whoever still asks. */
export const CLOSED =
  'this engine is closed: close() was called in this process; open another one to go on, which finds all runs as they are'

export interface UntilClosed {
  fetch(request: Request): Promise<Response>
  /** Resolves when what was asked before has been answered. */
  close(): Promise<void>
}

export const untilClosed = (handler: Pick<Handler, 'fetch' | 'stop'>): UntilClosed => {
  const inFlight = new Set<Promise<unknown>>()
  let closed = false
  return {
    async fetch(request) {
      if (closed)
        return Response.json(problemOf('engine_closed', CLOSED), {
          status: codes.engine_closed.status,
          headers: { 'content-type': PROBLEM_TYPE },
        })
      const answer = handler.fetch(request)
      inFlight.add(answer)
      return answer.finally(() => inFlight.delete(answer))
    },
    async close() {
      closed = true
      handler.stop()
      await Promise.allSettled(inFlight)
    },
  }
}
