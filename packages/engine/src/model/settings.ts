// Every number that the engine decides by, with its default. A name ends in its unit: `Ms`, `Bytes` or `Chars`; what has
// none is counted.
import { strangeMembers } from '../kernel/known-members.ts'
import { INT_MAX } from '../kernel/numbers.ts'

export interface Settings {
  /** How long a session may drive what it holds after its last renewal. */
  readonly leaseMs: number
  /** How often an executor renews its session's lease; 2.5 times must fit into `leaseMs`. */
  readonly renewMs: number
  /** How often the sweeps that take back and enforce limits look. */
  readonly sweepMs: number
  /** How often waiting work is looked at when no wake-up came. */
  readonly pollMs: number
  /** How long after a limit the store ends the attempt, whatever its body does. */
  readonly limitGraceMs: number
  /** How long the holder of a canceled run may take to settle before the store ends its attempt. */
  readonly cancelGraceMs: number
  /** Losses in a row without a new entry that end a run. */
  readonly lossesMax: number
  /** Losses in a row after which only an empty session may claim the run. */
  readonly lossesSuspect: number
  /** Hand-backs in a row without a new entry that pause a run (`no_progress`). */
  readonly handBacksMax: number
  /** Delay after the second hand-back in a row; doubles with each one more, up to `handBackDelayMaxMs`. */
  readonly handBackDelayMs: number
  /** The longest delay after a hand-back. */
  readonly handBackDelayMaxMs: number
  /** How deep runs may be nested as children of children; a run without a parent is at depth 0. */
  readonly depthMax: number
  /** Children that one run may start in all. */
  readonly childrenMax: number
  /** Bytes of one payload as JSON text: an input, a result, a signal, a decision. */
  readonly payloadMaxBytes: number
  /** Bytes of all outcomes in one run's journal. */
  readonly journalMaxBytes: number
  /** Entries of one run's journal. */
  readonly entriesMax: number
  /** Bytes of journal that come with a claim; what is longer is fetched by pages. */
  readonly claimJournalMaxBytes: number
  /** Characters of what one attempt writes that are kept: half of its beginning, half of its end. */
  readonly logMaxChars: number
  /** Unread signals of one run. */
  readonly signalsMax: number
  /** Bytes of all unread signals of one run together. */
  readonly signalsMaxBytes: number
  /** Failures by its own content after which an order is set aside. */
  readonly orderFailuresMax: number
  /** Runs that one owner may have at once, where no operator has set another value. */
  readonly ownerLimit: number
  /** Deadline of an approval that is recorded without one. */
  readonly approvalMs: number
  /** How long the answer under an `Idempotency-Key` is kept for a repeat. */
  readonly commandMs: number
  /** How long ended runs, ended sessions and notices are kept. */
  readonly retentionMs: number
  /** How long after it could have begun an unclaimed run becomes a notice. */
  readonly startOverdueMs: number
  /** How long before its deadline an open approval becomes a notice; half of its time, where that is shorter. */
  readonly approvalLapsingMs: number
  /** How long a server may take to send what it has claimed; as many are claimed as fit. */
  readonly deliveryLeaseMs: number
  /** How long one send may take. */
  readonly deliveryTimeoutMs: number
  /** Refusals of its sink after which a delivery is dead. */
  readonly deliveryRefusalsMax: number
  /** Delay after the first refusal; doubles with each one more, up to `deliveryBackoffMaxMs`. */
  readonly deliveryBackoffMs: number
  /** The longest delay after a refusal. */
  readonly deliveryBackoffMaxMs: number
  /** Age of the oldest open delivery from which its sink counts as late. */
  readonly deliveryLateMs: number
  /** How long a server that stops waits for what it is sending. */
  readonly deliveryDrainMs: number
  /** How long no server may have a sink before it counts as removed. */
  readonly sinkGoneMs: number
  /** How late a schedule's tick may be fired before it counts as missed. */
  readonly missedAfterMs: number
  /** How long a delivery that arrived is known, so that it is taken once. */
  readonly arrivalsMs: number
  /** Bytes of one delivery's body. */
  readonly hookBodyMaxBytes: number
}

/** The settings where nobody says otherwise. */
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
  payloadMaxBytes: 1024 ** 2,
  journalMaxBytes: 50 * 1024 ** 2,
  entriesMax: 10_000,
  claimJournalMaxBytes: 4 * 1024 ** 2,
  logMaxChars: 1024 ** 2,
  signalsMax: 1_000,
  signalsMaxBytes: 8 * 1024 ** 2,
  orderFailuresMax: 10,
  ownerLimit: 10,
  approvalMs: 86_400_000,
  commandMs: 86_400_000,
  retentionMs: 30 * 86_400_000,
  startOverdueMs: 600_000,
  approvalLapsingMs: 3_600_000,
  deliveryLeaseMs: 60_000,
  deliveryTimeoutMs: 10_000,
  deliveryRefusalsMax: 15,
  deliveryBackoffMs: 5_000,
  deliveryBackoffMaxMs: 6 * 3_600_000,
  deliveryLateMs: 900_000,
  deliveryDrainMs: 5_000,
  sinkGoneMs: 3_600_000,
  missedAfterMs: 60_000,
  arrivalsMs: 3 * 86_400_000,
  hookBodyMaxBytes: 5 * 1024 ** 2,
}

const PERIODS = [
  'leaseMs',
  'renewMs',
  'sweepMs',
  'pollMs',
  'deliveryLeaseMs',
  'deliveryTimeoutMs',
  'deliveryBackoffMs',
  'sinkGoneMs',
] as const

/** All faults of a settings object at once, as sentences; an empty list when it can be used. */
export const settingsFaults = (settings: Settings): string[] => {
  const faults = [
    ...strangeMembers(settings, defaults, 'settings'),
    ...Object.entries(settings)
      .filter(([, value]) => !Number.isFinite(value) || value < 0)
      .map(([name, value]) => `${name} is ${String(value)}; expected a number of 0 or more`),
  ]
  // what is counted is counted in columns of 32 bits
  for (const [name, value] of Object.entries(settings))
    if (
      !/(Ms|Bytes|Chars)$/.test(name) &&
      value >= 0 &&
      !(Number.isInteger(value) && value <= INT_MAX)
    )
      faults.push(`${name} is ${value}; expected a whole number of 0 to ${INT_MAX}`)
  // a period of nothing is a loop without rest, and a lease of nothing has lapsed before it was given
  for (const name of PERIODS)
    if (settings[name] === 0) faults.push(`${name} is 0; expected a duration of 1 ms or more`)
  if (settings.renewMs > settings.leaseMs / 2.5)
    faults.push(
      `renewMs is ${settings.renewMs} for a leaseMs of ${settings.leaseMs}; ${twoAndAHalf(settings)}, ` +
        'so that two lost renewals do not end a living session',
    )
  if (settings.deliveryTimeoutMs > settings.deliveryLeaseMs / 2)
    faults.push(
      `deliveryTimeoutMs is ${settings.deliveryTimeoutMs} for a deliveryLeaseMs of ${settings.deliveryLeaseMs}; expected at most ${Math.floor(settings.deliveryLeaseMs / 2)}, ` +
        'so that a send is over and recorded before another server sends the same',
    )
  if (settings.deliveryRefusalsMax < 1)
    faults.push(`deliveryRefusalsMax is ${settings.deliveryRefusalsMax}; expected 1 or more`)
  return faults
}

const twoAndAHalf = ({ leaseMs, renewMs }: Settings): string => {
  const most = Math.floor(leaseMs / 2.5)
  const lease = `a leaseMs of ${Math.ceil(renewMs * 2.5)} or more`
  return most >= 1 ? `expected at most ${most}, or ${lease}` : `expected ${lease}`
}
