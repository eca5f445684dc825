// An abort signal that is made when somebody looks at it. Most bodies never do, and each signal costs microseconds to
// make and more to collect; thousands would be made a second.
export class Abort {
  readonly #above: Abort | null
  #controller: AbortController | null = null
  #came: { readonly reason: unknown } | null = null
  #heard: Set<(reason: unknown) => void> | null = null
  #unlink: (() => void) | null = null

  /** What aborts the one above aborts this one. */
  constructor(above: Abort | null = null) {
    this.#above = above
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#came) this.#controller.abort(this.#came.reason)
      else if (this.#above) this.#unlink = this.#above.onAbort((reason) => this.abort(reason))
    }
    return this.#controller.signal
  }

  get aborted(): boolean {
    return this.#came !== null
  }

  abort(reason: unknown): void {
    if (this.#came) return
    this.#came = { reason }
    this.#controller?.abort(reason)
    for (const hear of this.#heard ?? []) hear(reason)
    this.#heard = null
  }

  /** Calls `hear` at the abort, at once where it has come; returns a function that takes it back. */
  onAbort(hear: (reason: unknown) => void): () => void {
    if (this.#came) {
      hear(this.#came.reason)
      return () => undefined
    }
    this.#heard ??= new Set()
    this.#heard.add(hear)
    return () => void this.#heard?.delete(hear)
  }

  /** Nobody above is listened to any more. */
  settle(): void {
    this.#unlink?.()
    this.#unlink = null
  }
}
