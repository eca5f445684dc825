// Every example payload of every event that the package @octokit/webhooks-examples has, each as one delivery.
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)

interface Webhook {
  readonly name: string
  readonly examples: readonly Readonly<Record<string, unknown>>[]
}

export interface Delivery {
  readonly event: string
  readonly delivery: string
  readonly payload: Readonly<Record<string, unknown>>
}

export const deliveries = (): Delivery[] => {
  const webhooks = require('@octokit/webhooks-examples') as readonly Webhook[]
  return webhooks.flatMap(({ name, examples }) =>
    examples.map((payload, i) => ({ event: name, delivery: `${name}-${i + 1}`, payload })),
  )
}
