// What a run's status is called on the page, and how it looks: one table for every part that shows it.
export type Status =
  'queued' | 'running' | 'waiting' | 'paused' | 'canceling' | 'succeeded' | 'failed' | 'canceled'

export type Look = { label: string; tone: 'calm' | 'busy' | 'good' | 'bad'; mark: string }

export const statusWords = {
  queued: { label: 'Queued', tone: 'calm', mark: '○' },
  running: { label: 'Running', tone: 'busy', mark: '●' },
  waiting: { label: 'Waiting', tone: 'calm', mark: '◔' },
  paused: { label: 'Paused', tone: 'calm', mark: '‖' },
  canceling: { label: 'Canceling', tone: 'busy', mark: '◌' },
  succeeded: { label: 'Succeeded', tone: 'good', mark: '✓' },
  failed: { label: 'Failed', tone: 'bad', mark: '✕' },
  canceled: { label: 'Canceled', tone: 'calm', mark: '–' },
} as const satisfies Record<Status, Look>

export const statuses: readonly Status[] = [
  'running',
  'canceling',
  'queued',
  'waiting',
  'paused',
  'failed',
  'succeeded',
  'canceled',
]

/** What a waiting run waits on, as the end of a sentence. */
export const waitWords: Record<string, string> = {
  child: 'on a child run',
  workspace: 'on a workspace',
  approval: 'on an approval',
  signal: 'on a signal',
  time: 'until its time comes',
  slot: 'on a free slot',
}
