// The one route table. Server, client, command line and OpenAPI are made from it; a route that is not here does not exist.
import { deliveryRoutes } from './delivery-routes.ts'
import { executorRoutes } from './executor-routes.ts'
import { operationsRoutes } from './operations-routes.ts'
import type { Route } from './route.ts'
import { runRoutes } from './run-routes.ts'
import { scheduleRoutes } from './schedule-routes.ts'
import { spawnRoutes } from './spawn-routes.ts'
import { triggerRoutes } from './trigger-routes.ts'

export const routes = {
  ...runRoutes,
  ...scheduleRoutes,
  ...triggerRoutes,
  ...operationsRoutes,
  ...deliveryRoutes,
  ...executorRoutes,
  ...spawnRoutes,
}

export type Routes = typeof routes
export type RouteName = keyof Routes

/** The path of a route with its parameters filled in. */
export const pathOf = (route: Route, params: Readonly<Record<string, string>> = {}): string =>
  route.path.replace(/:(\w+)/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''))

/** Header that names who acts; a write without it is by `api`. */
export const ACTOR_HEADER = 'leasehold-actor'
export const KEY_HEADER = 'idempotency-key'
export const REPLAYED_HEADER = 'idempotency-replayed'
