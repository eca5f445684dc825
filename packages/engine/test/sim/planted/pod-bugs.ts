// Bugs of one line in what launches pods and lets them adopt their attempts, hunted in worlds of pods.
import type { Bug } from './bugs.ts'

const bug = (name: string, file: string, find: string, replace: string, why: string): Bug => ({
  name,
  file,
  find,
  replace,
  why,
})

export const podBugs: readonly Bug[] = [
  bug(
    'pod-removed-at-work',
    'executor/pods/launched.ts',
    'let removed = !isItsOwn && (await this.#remove())',
    'let removed = await this.#remove()',
    'RAIL-14 a launcher removes the pod that has adopted its attempt',
  ),
  bug(
    'pod-slot-freed-early',
    'executor/pods/launched.ts',
    `if (seen?.state === 'none' || seen?.state === 'ended') {`,
    `if (seen?.state === 'none' || seen?.state === 'ended' || seen?.state === 'going') {`,
    'EX-10 the slot of a pod is free when it has been told to end',
  ),
  bug(
    'pod-hung-kept',
    'executor/pods/launched.ts',
    'return now - this.#unheldSince >= SHOWN_LATE_MS',
    'return false',
    'EX-10 a pod that hangs holds the slot of a launcher that has lost its lease',
  ),
  bug(
    'pod-end-unreported',
    'executor/pods/launched.ts',
    'await this.#launcher.exited(this.#runner, note)',
    'void note',
    'RUN-06 what a pod held that is gone waits for its lease',
  ),
  bug(
    'pod-gone-by-silence',
    'executor/pods/launched.ts',
    'await sleep(timers, jittered(random, RETRY.maxMs))\n      return null',
    `return { state: 'none', note: 'nobody answers' }`,
    'EX-10 a cluster that does not answer counts as proof that a pod is gone',
  ),
  bug(
    'pod-gone-with-its-job',
    'executor/pods/kubernetes-pods.ts',
    'if (alive.length > 0) {',
    'if (alive.length > 0 && job !== undefined) {',
    'EX-24 a pod that outlives its job is not seen',
  ),
  bug(
    'pod-left-by-the-dead',
    'executor/preparing/recovery.ts',
    'await launcher.pods.remove(label, runner)',
    '',
    'EX-26 what a dead launcher left and never began stays for ever',
  ),
  bug(
    'pod-adopts-late',
    'transitions/adopt.ts',
    'if (tx.now > startBy)',
    'if (tx.now > startBy + 60_000)',
    'RAIL-14 an attempt is adopted after it was to begin',
  ),
  bug(
    'pod-adopts-from-anyone',
    'store/move/claims.ts',
    `runs.attempt = $2 and coalesce(runs.session, '') = $3 and coalesce(runs.status, '') = 'running'`,
    `runs.attempt = $2 and coalesce(runs.session, '') >= '' and $3 <> '' and coalesce(runs.status, '') = 'running'`,
    'RAIL-14 an attempt is adopted whoever holds it',
  ),
]
