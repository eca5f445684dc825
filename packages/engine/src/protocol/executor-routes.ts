// Routes of executors: the executor port over HTTP. They repeat by keys of their own and carry JSON as text.
import * as z from 'zod'
import {
  adoptRequest,
  answer,
  claimRequest,
  closeRequest,
  grantRequest,
  itemProblem,
  logsRequest,
  registerRequest,
  renewRequest,
} from './executor-shapes.ts'
import { route } from './route.ts'
import { instant, int, name } from './values.ts'

const ours = { group: 'executor protocol', role: 'executor', hot: true, size: 'bulk' } as const

export const executorRoutes = {
  register: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/register',
    summary: 'Begin a session: versions, queues, labels, definitions, capacity',
    body: registerRequest,
    answer,
    refusals: ['incompatible_protocol', 'too_many_limits'],
  }),
  claim: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/claim',
    summary: 'Claim due runs; waits up to `waitMs` (20 s at most) for some',
    body: claimRequest,
    answer,
    refusals: ['session_ended', 'claim_superseded'],
  }),
  write: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/write',
    summary: 'Writes of attempts, each guarded by its fence and answered on its own',
    body: z.object({
      session: name,
      writes: z.array(z.unknown()).max(10_000).describe('Each an AttemptWrite'),
    }),
    answer: z.object({ answers: z.array(z.union([answer, itemProblem])) }),
    refusals: [],
  }),
  renew: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/renew',
    summary: 'Renew a session’s lease, which renews all that it holds',
    body: renewRequest,
    answer,
    refusals: ['session_ended'],
  }),
  close: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/close',
    summary: 'End a session and hand back all that it holds',
    body: closeRequest,
    answer,
    refusals: [],
  }),
  logs: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/logs',
    summary:
      'Keep lines that attempts of the session have written; a part that came before is kept once',
    body: logsRequest,
    answer,
    refusals: [],
  }),
  journal: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/journal',
    summary:
      'Entries of a run that the session holds, after a number, up to a page; an empty page ends the journal',
    body: z.object({ session: name, run: name, after: int.min(0) }),
    answer: z.object({ entries: z.array(z.unknown()) }),
    refusals: ['stale_attempt'],
  }),
  grant: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/grant',
    summary:
      'A token for one attempt that the session holds: its bearer may adopt it, drive it, and nothing else',
    body: grantRequest,
    answer: z.object({ ok: z.literal(true), token: z.string(), startBy: instant }),
    refusals: ['stale_attempt', 'session_ended'],
  }),
  adopt: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/adopt',
    summary:
      'Take over the attempt of the token, from the session that launched it; may be repeated',
    body: adoptRequest,
    answer,
    refusals: ['stale_attempt', 'session_ended'],
  }),
  exited: route({
    ...ours,
    method: 'POST',
    path: '/v1/executor/exited',
    summary: 'Report that exactly the process of a session has ended, with the evidence',
    body: z.object({ session: name, evidence: z.string().min(1).max(2_000) }),
    answer: z.object({ ok: z.literal(true), ended: z.boolean() }),
    refusals: ['not_found'],
  }),
  listen: route({
    method: 'GET',
    path: '/v1/executor/listen',
    summary: 'What a session is told: messages `told`; the newest connection replaces older ones',
    group: ours.group,
    role: 'executor',
    query: z.strictObject({ session: name }),
    answer: z.unknown(),
    refusals: [],
    stream: true,
  }),
}
