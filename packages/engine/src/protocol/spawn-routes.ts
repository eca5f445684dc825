// Routes of spawners, which start executors while a queue waits, and of people who look at what they did.
import * as z from 'zod'
import { spawnMachine } from '../model/spawn.ts'
import { route } from './route.ts'
import { inQuery, instant, int, ms, name } from './values.ts'

const spawn = z
  .object({
    session: z.string().describe('The session that it was to register'),
    queue: z.string(),
    spawner: z.string(),
    kind: z.string(),
    reason: z.string(),
    state: z.enum(spawnMachine.states),
    askedAt: instant,
    startBy: instant.describe('When it was to be there'),
    settledAt: instant.nullable(),
    evidence: z.string().nullable().describe('How it is known that it is gone'),
  })
  .meta({ id: 'Spawn', description: 'An executor that was started because a queue waited' })

export const spawnRoutes = {
  beginSpawn: route({
    method: 'POST',
    path: '/v1/executor/spawns',
    summary:
      'Ask whether an executor is to be started for a queue: one that is has its row with the reason before',
    group: 'executor protocol',
    role: 'executor',
    hot: true,
    body: z.strictObject({
      queue: name,
      spawner: name,
      kind: name,
      max: int.min(0),
      slots: int.min(1),
      afterMs: ms,
      cooldownMs: ms,
      startByMs: ms,
      mine: z.array(name).max(1_000),
    }),
    answer: z.object({
      ok: z.literal(true),
      session: z.string().nullable().describe('null: none is to be started'),
      reason: z.string(),
      mine: z.array(z.object({ session: z.string(), seen: z.enum(['starting', 'live', 'ended']) })),
    }),
    refusals: [],
  }),
  settleSpawn: route({
    method: 'POST',
    path: '/v1/executor/spawns/:session/settle',
    summary:
      'Report that exactly the process of an executor that was started has ended; what it held is taken back',
    group: 'executor protocol',
    role: 'executor',
    hot: true,
    params: z.strictObject({ session: name }),
    body: z.strictObject({ evidence: z.string().min(1).max(2_000) }),
    answer: z.object({ ok: z.literal(true), ended: z.boolean() }),
    refusals: ['not_found'],
  }),
  listSpawns: route({
    method: 'GET',
    path: '/v1/spawns',
    summary: 'Executors that were started because a queue waited, newest first, each with why',
    group: 'executors',
    role: 'viewer',
    query: z.strictObject({
      cursor: z.string().max(5_000).optional(),
      limit: inQuery.whole(1, 1_000).default(100),
    }),
    answer: z.object({ spawns: z.array(spawn), next: z.string().nullable() }),
    refusals: [],
  }),
}
