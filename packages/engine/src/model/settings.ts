// Every number that the engine decides by, with its default. Durations are milliseconds, sizes bytes.
export interface Settings {
  /** How long a session may drive what it holds after its last renewal. */
  readonly leaseMs: number
  readonly renewMs: number
  /** How often the sweeps that take back and enforce limits look. */
  readonly sweepMs: number
  /** How often waiting work is looked at when no wake-up came. */
  readonly pollMs: number
  /** How long after a limit the store ends the attempt, whatever its body does. */
  readonly limitGraceMs: number
  readonly cancelGraceMs: number
  /** Losses in a row without a new entry that end a run. */
  readonly lossesMax: number
  /** Losses in a row after which only an empty session may claim the run. */
  readonly lossesSuspect: number
  readonly handBacksMax: number
  readonly handBackDelayMs: number
  readonly handBackDelayMaxMs: number
  readonly depthMax: number
  readonly childrenMax: number
  readonly payloadMax: number
  readonly journalMax: number
  readonly entriesMax: number
  readonly claimJournalMax: number
  readonly signalsMax: number
  readonly signalBytesMax: number
  readonly ownerLimit: number
  readonly approvalMs: number
  readonly commandMs: number
  readonly retentionMs: number
  readonly startOverdueMs: number
}

export const defaults: Settings = {
  leaseMs: 30_000,
  renewMs: 10_000,
  sweepMs: 5_000,
  pollMs: 1_000,
  limitGraceMs: 10_000,
  cancelGraceMs: 30_000,
  lossesMax: 5,
  lossesSuspect: 2,
  handBacksMax: 10,
  handBackDelayMs: 1_000,
  handBackDelayMaxMs: 300_000,
  depthMax: 20,
  childrenMax: 1_000,
  payloadMax: 1024 ** 2,
  journalMax: 50 * 1024 ** 2,
  entriesMax: 10_000,
  claimJournalMax: 4 * 1024 ** 2,
  signalsMax: 1_000,
  signalBytesMax: 8 * 1024 ** 2,
  ownerLimit: 10,
  approvalMs: 86_400_000,
  commandMs: 86_400_000,
  retentionMs: 30 * 86_400_000,
  startOverdueMs: 600_000,
}

/** All faults of a settings object at once, as sentences; an empty list when it can be used. */
export const settingsFaults = (settings: Settings): string[] => {
  const faults = Object.entries(settings)
    .filter(([, value]) => !Number.isFinite(value) || value < 0)
    .map(([name, value]) => `${name} is ${String(value)}; expected a number of 0 or more`)
  if (settings.renewMs > settings.leaseMs / 2.5)
    faults.push(
      `renewMs is ${settings.renewMs} for a leaseMs of ${settings.leaseMs}; expected at most ${Math.floor(settings.leaseMs / 2.5)}, ` +
        'so that two lost renewals do not end a living session',
    )
  return faults
}
