// An abort signal that is made when somebody looks at it. Most bodies never do, and each signal costs microseconds to
// make and to collect; thousands are made a second.

export interface Abort {
  readonly signal: AbortSignal
  readonly aborted: boolean
  abort(reason: unknown): void
  /** Calls `hear` at the abort, at once where it has come; returns a function that takes it back. */
  onAbort(hear: (reason: unknown) => void): () => void
}

const nothing = (): void => undefined

export const makeAbort = (): Abort => {
  let controller: AbortController | null = null
  let came: { readonly reason: unknown } | null = null
  const heard = new Set<(reason: unknown) => void>()
  return {
    get signal() {
      if (controller === null) {
        controller = new AbortController()
        if (came) controller.abort(came.reason)
      }
      return controller.signal
    },
    get aborted() {
      return came !== null
    },
    abort(reason) {
      if (came) return
      came = { reason }
      controller?.abort(reason)
      for (const hear of heard) hear(reason)
      heard.clear()
    },
    onAbort(hear) {
      if (came) {
        hear(came.reason)
        return nothing
      }
      heard.add(hear)
      return () => void heard.delete(hear)
    },
  }
}
