// Routes of triggers, and the one that their senders call.
import * as z from 'zod'
import { route } from './route.ts'
import { hookName, newTrigger, taken, trigger, triggerDetail } from './trigger-shapes.ts'
import { instant, maybe } from './values.ts'

const params = z.strictObject({ name: hookName })

export const triggerRoutes = {
  listTriggers: route({
    method: 'GET',
    path: '/v1/triggers',
    summary: 'Triggers, by their names',
    group: 'triggers',
    role: 'viewer',
    answer: z.object({ now: instant, triggers: z.array(trigger) }),
    refusals: [],
  }),
  getTrigger: route({
    method: 'GET',
    path: '/v1/triggers/:name',
    summary: 'A trigger, and what became of its newest deliveries',
    group: 'triggers',
    role: 'viewer',
    params,
    answer: triggerDetail,
    refusals: ['not_found'],
  }),
  setTrigger: route({
    method: 'PUT',
    path: '/v1/triggers/:name',
    summary: 'Make a trigger, or make it what is said now; a paused one stays paused',
    group: 'triggers',
    role: 'operator',
    params,
    body: newTrigger,
    answer: triggerDetail,
    refusals: ['unknown_workflow'],
  }),
  pauseTrigger: route({
    method: 'POST',
    path: '/v1/triggers/:name/pause',
    summary: 'Pause a trigger: its deliveries are refused, so that their senders bring them again',
    group: 'triggers',
    role: 'operator',
    params,
    body: z.strictObject({ why: maybe(z.string().max(2_000)) }),
    answer: triggerDetail,
    refusals: ['not_found', 'command_reused'],
  }),
  resumeTrigger: route({
    method: 'POST',
    path: '/v1/triggers/:name/resume',
    summary: 'Resume a trigger',
    group: 'triggers',
    role: 'operator',
    params,
    body: z.strictObject({}),
    answer: triggerDetail,
    refusals: ['not_found', 'not_paused', 'command_reused'],
  }),
  deleteTrigger: route({
    method: 'DELETE',
    path: '/v1/triggers/:name',
    summary: 'Delete a trigger; runs that it has started go on',
    group: 'triggers',
    role: 'operator',
    params,
    answer: z.object({ name: z.string() }),
    refusals: ['not_found'],
  }),
  takeDelivery: route({
    method: 'POST',
    path: '/hooks/:name',
    summary:
      'A delivery of a webhook, as its sender signs it. Once for each delivery: a repeat answers what became of the first',
    group: 'triggers',
    role: 'public',
    params: z.strictObject({ name: z.string().max(200) }),
    answer: taken,
    raw: true,
    refusals: [
      'unauthorized',
      'payload_too_large',
      'invalid_request',
      'invalid_input',
      'unknown_workflow',
      'limit_full',
      'signals_full',
      'trigger_paused',
      'draining',
    ],
  }),
}
