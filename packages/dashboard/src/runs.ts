// The runs as the server gives them, and what the page works out from them. No DOM here.
import { statuses, waitWords, type Status } from './words/status.ts'

export type Run = {
  id: string
  workflow: string
  status: Status
  waitOn: string | null
  reason: string | null
  attempt: number
  session: string | null
  leasedAt: number | null
  createdAt: number
  endedAt: number | null
}

export function countByStatus(runs: readonly Run[]): [Status, number][] {
  return statuses.map((status) => [status, runs.filter((run) => run.status === status).length])
}

/** The one thing to know about a run besides its status: who holds it, what it waits on, why it ended. */
export function remark(run: Run): string {
  if (run.session !== null) return `held by ${run.session}, attempt ${run.attempt}`
  const wait = run.waitOn === null ? '' : (waitWords[run.waitOn] ?? `on ${run.waitOn}`)
  return [wait, run.reason?.replaceAll('_', ' ') ?? ''].filter(Boolean).join('; ')
}

export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`
}

/** Accepts a bare list and a page with the list in `runs` or `items`. */
export function readRuns(body: unknown): Run[] {
  if (Array.isArray(body)) return body as Run[]
  const page = body as { runs?: Run[]; items?: Run[] }
  const runs = page.runs ?? page.items
  if (!runs) throw new Error('the answer holds no list of runs')
  return runs
}
