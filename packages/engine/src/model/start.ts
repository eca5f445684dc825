// Starting a run: from a command and the catalog to the row that is inserted, or a refusal. Pure.
import { LeaseholdError } from '../kernel/errors.ts'
import { canonical, decode, jsonFault, shown } from '../kernel/json.ts'
import { INT_MAX } from '../kernel/numbers.ts'
import type { Outcome, Refusal } from '../kernel/outcome.ts'
import { refuse } from '../kernel/outcome.ts'
import type { Catalog, Definition } from './definition.ts'
import { at, definitionOf, isName, limitKey, NAME_EXPECTED } from './definition.ts'
import { backoffMs, triesLeft } from './retry.ts'
import { definitionFaults } from './definition-faults.ts'
import { laneFault } from './indexed.ts'
import type { Run } from './run.ts'
import { laneOf } from './run.ts'
import type { Settings } from './settings.ts'
import type { Shard } from './shard.ts'
import { shardOfId, shardOfOwner } from './shard.ts'
import type { LimitMode } from './slots.ts'

export interface StartCommand {
  /** Minted by the client before its first try: the run's id, and its command id where none is given. */
  readonly id: string
  readonly command?: string | null
  readonly workflow: string
  readonly version?: string | null
  /** JSON text. */
  readonly input: string | null
  readonly key?: string | null
  readonly owner?: string | null
  readonly queue?: string | null
  readonly labels?: readonly string[] | null
  readonly priority?: number | null
  /** Milliseconds before the run may start, or the instant. */
  readonly delayMs?: number | null
  readonly startAt?: number | null
  /** Ends `failed`, reason `not_started`, when nobody has claimed it so many milliseconds after its start. */
  readonly startByMs?: number | null
  readonly totalLimitMs?: number | null
  readonly attemptLimitMs?: number | null
}

/** A run as it is inserted; names are those of its columns. `tag` null takes its place behind the lane's virtual time. */
export interface NewRun {
  readonly id: string
  readonly workflow: string
  readonly version: string
  readonly queue: string
  readonly labels: string
  readonly lane: string
  readonly priority: number
  readonly weight: number
  readonly tag: number | null
  readonly floor: number
  readonly owner: string
  readonly key: string | null
  readonly input_hash: string
  readonly command: string | null
  readonly status: 'queued' | 'waiting' | 'paused'
  readonly wait_on: 'slot' | null
  readonly reason: string | null
  readonly note: string | null
  readonly ready_at: number | null
  /** Added to the store's clock, for delays whose sender does not know it. */
  readonly ready_in_ms: number | null
  readonly deadline_in_ms: number | null
  readonly attempt_limit_ms: number | null
  readonly start_by: number | null
  readonly start_within_ms: number | null
  readonly parent: string | null
  readonly parent_key: string | null
  readonly awaited: number
  readonly on_parent_end: Run['onParentEnd']
  readonly depth: number
  readonly root: string
  readonly retry_of: string | null
  readonly series: string
  readonly on_end: string | null
  readonly on_end_of: string | null
  readonly limit_owner: string | null
  readonly limit_global: string | null
  readonly limit_a: string | null
  readonly limit_b: string | null
  readonly limit_modes: Run['limitModes']
  readonly units_a: number
  readonly units_b: number
  readonly pause_requested_at: number | null
  readonly pause_by: string | null
  readonly entries: number
  readonly journal_bytes: number
  readonly input: string | null
  readonly state: string | null
}

/** A limit that a run is under, with what the code says of it. */
export interface RunLimit {
  readonly key: string
  readonly mode: LimitMode
  readonly value: number | null
  readonly policy: 'queue' | 'reject'
  /** Units that the run takes of it. */
  readonly units: number
}

export interface Planned {
  readonly run: NewRun
  readonly limits: readonly RunLimit[]
  readonly definition: Definition
}

export interface Family {
  readonly parent: string
  readonly parentKey: string
  readonly awaited: boolean
  readonly onParentEnd: Run['onParentEnd']
  readonly depth: number
  readonly root: string
  readonly owner: string
}

export interface Origin {
  readonly family?: Family
  readonly retryOf?: string
  readonly onEndOf?: string
  /** The series that the run continues, with what it inherits. */
  readonly continues?: { readonly series: string; readonly state: string | null }
  readonly entries?: number
  readonly journalBytes?: number
}

export interface PlanContext {
  readonly catalog: Catalog
  readonly settings: Settings
  /** Keyed hash of a canonical text. */
  readonly hash: (text: string) => string
  /** A lane's virtual time as far as this process has seen it: it never falls, also when the lane is empty. */
  readonly virtual: (lane: string) => number
  /** Which of several databases the runs are stored in. */
  readonly shard: Shard
}

/** A run that is stored where nobody would look for it: its id leads to another shard, or its owner's key and limit do. */
const strayed = (
  { id, owner }: StartCommand,
  origin: Origin,
  { number, count }: Shard,
): Refusal | null => {
  if (count === 1) return null
  const named = shardOfId(id)
  if (named !== number)
    return refuse(
      'invalid_request',
      `the id ${id} is one of shard ${named}, and the start came to shard ${number} of ${count}; start it through a server of all shards, or mint its id for this one`,
      { id, shard: number },
    )
  // what comes of another run is beside it, whoever owns it
  const fresh = !origin.family && !origin.continues && !(origin.retryOf ?? origin.onEndOf)
  const own = shardOfOwner(owner ?? '', count)
  return !fresh || own === number
    ? null
    : refuse(
        'invalid_request',
        `runs of ${owner ? `the owner ${owner}` : 'no owner'} are on shard ${own}, and the start came to shard ${number} of ${count}; start it through a server of all shards`,
        { id, shard: number },
      )
}

/** Every refusal that needs no row: unknown names, sizes, depths, limits. */
export const planStart = (
  command: StartCommand,
  origin: Origin,
  { catalog, settings, hash, virtual, shard }: PlanContext,
): Outcome<{ planned: Planned }> => {
  const fault = commandFault(command, settings) ?? strayed(command, origin, shard)
  if (fault) return fault
  const definition = definitionOf(catalog, command.workflow, command.version)
  if (!definition)
    return refuse('unknown_workflow', unknownWorkflow(command, catalog), {
      workflow: command.workflow,
      version: command.version ?? null,
    })
  const depth = origin.family ? origin.family.depth + 1 : 0
  if (depth > settings.depthMax)
    return refuse(
      'depth_limit',
      `${command.workflow} would be run ${depth} deep; the limit is ${settings.depthMax}. Look for a workflow that starts itself`,
      { depth, limit: settings.depthMax },
    )
  const broken = command.input === null ? null : jsonFault(command.input)
  if (broken !== null) return refuse('invalid_request', `the input cannot be kept: ${broken}`)
  const input = decode(command.input)
  const owner = command.owner ?? origin.family?.owner ?? ''
  const ownerKey = owner === '' || origin.onEndOf !== undefined ? null : `owner:${owner}`
  const given = keyedLimits(definition, input)
  if (!given.ok) return given
  // a key stands in one column of a row, or its run would be counted twice
  const others = new Set([ownerKey, ...(catalog.globalLimit ? ['global'] : [])])
  const keyed = given.limits.filter(
    ({ key }, i) => !others.has(key) && given.limits.findIndex((other) => other.key === key) === i,
  )
  const limits: RunLimit[] = [
    ...(ownerKey === null
      ? []
      : [
          {
            key: ownerKey,
            mode: 'whole_run' as const,
            value: settings.ownerLimit,
            policy: 'queue' as const,
            units: 1,
          },
        ]),
    ...(catalog.globalLimit
      ? [
          {
            key: 'global',
            mode: 'whole_run' as const,
            value: null,
            policy: 'queue' as const,
            units: 1,
          },
        ]
      : []),
    ...keyed,
  ]
  const labels = [...new Set([...definition.labels, ...(command.labels ?? [])])].sort()
  const queue = command.queue ?? definition.queue
  const lane = laneOf(queue, definition.workflow, definition.version, labels)
  const long = laneFault(lane, command.id)
  if (long) return long
  const delayed = (command.delayMs ?? 0) > 0 || (command.startAt ?? null) !== null
  const run: NewRun = {
    id: command.id,
    workflow: definition.workflow,
    version: definition.version,
    queue,
    labels: JSON.stringify(labels),
    lane,
    priority: command.priority ?? 0,
    weight: 1,
    tag: null,
    floor: virtual(lane),
    owner,
    key: command.key ?? null,
    input_hash: hash(canonical(input ?? null)),
    command: command.command ?? null,
    status: delayed ? 'waiting' : 'queued',
    wait_on: delayed ? 'slot' : null,
    reason: delayed ? 'delayed' : null,
    note: null,
    ready_at: command.startAt ?? null,
    // a delay of nothing is none: what is queued is ready already
    ready_in_ms: delayed ? (command.delayMs ?? null) : null,
    deadline_in_ms: command.totalLimitMs ?? definition.totalLimitMs,
    attempt_limit_ms: command.attemptLimitMs ?? definition.attemptLimitMs,
    start_by: null,
    start_within_ms: command.startByMs ?? definition.startByMs,
    parent: origin.family?.parent ?? null,
    parent_key: origin.family?.parentKey ?? null,
    awaited: origin.family?.awaited ? 1 : 0,
    on_parent_end: origin.family?.onParentEnd ?? 'cancel',
    depth,
    root: origin.family?.root ?? command.id,
    retry_of: origin.retryOf ?? null,
    series: origin.continues?.series ?? command.id,
    on_end: origin.onEndOf === undefined ? definition.onEnd : null,
    on_end_of: origin.onEndOf ?? null,
    limit_owner: ownerKey,
    limit_global: catalog.globalLimit ? 'global' : null,
    limit_a: keyed[0]?.key ?? null,
    limit_b: keyed[1]?.key ?? null,
    limit_modes: modesOf(limits),
    units_a: keyed[0]?.units ?? 1,
    units_b: keyed[1]?.units ?? 1,
    pause_requested_at: null,
    pause_by: null,
    entries: origin.entries ?? 0,
    journal_bytes: origin.journalBytes ?? 0,
    input: command.input,
    state: origin.continues?.state ?? null,
  }
  return { ok: true, planned: { run, limits, definition } }
}

const modesOf = (limits: readonly RunLimit[]): Run['limitModes'] => {
  const whole = limits.some((limit) => limit.mode === 'whole_run')
  const held = limits.some((limit) => limit.mode === 'while_held')
  return whole && held ? 'wh' : whole ? 'w' : held ? 'h' : ''
}

/** `global` holds for all runs, and `owner:…` for those of an owner. */
const isOwnKey = (key: string): boolean => key === 'global' || key.startsWith('owner:')

const keyedLimits = (definition: Definition, input: unknown): Outcome<{ limits: RunLimit[] }> => {
  const limits: RunLimit[] = []
  for (const declared of definition.limits) {
    const key = limitKey(declared.key, input)
    if (key === undefined || !isName(key))
      return refuse(
        'invalid_input',
        `the limit ${declared.key} of ${definition.workflow} cannot be read from the input; expected a text or number at its path`,
        { limit: declared.key },
      )
    // what is written in the input is no limit of the engine's own: it would hold for runs that have nothing to do with it
    if (key !== declared.key && isOwnKey(key))
      return refuse(
        'invalid_input',
        `the limit ${declared.key} of ${definition.workflow} comes to ${key} by the input, which is a limit of the engine's own; put a word before what the input names, as in tenant:{tenant}`,
        { limit: declared.key, key },
      )
    const wanted =
      typeof declared.units === 'string' ? at(input, declared.units) : (declared.units ?? 1)
    if (typeof wanted !== 'number' || !Number.isInteger(wanted) || wanted < 1 || wanted > INT_MAX)
      return refuse(
        'invalid_input',
        `the limit ${declared.key} takes ${String(wanted)} units; expected a whole number of 1 to ${INT_MAX}`,
        { limit: declared.key },
      )
    limits.push({
      key,
      mode: declared.mode ?? 'while_held',
      value: declared.value,
      policy: declared.policy ?? 'queue',
      units: wanted,
    })
  }
  return { ok: true, limits }
}

const commandFault = (command: StartCommand, settings: Settings) => {
  const labels: unknown = command.labels ?? []
  if (!Array.isArray(labels))
    return refuse('invalid_request', `labels are ${shown(labels)}; expected a list of names`, {
      what: 'labels',
    })
  const names: [string, unknown][] = [
    ['id', command.id],
    ['workflow', command.workflow],
    ...(command.key === null || command.key === undefined
      ? []
      : [['key', command.key] as [string, unknown]]),
    ...(command.owner === null || command.owner === undefined || command.owner === ''
      ? []
      : [['owner', command.owner] as [string, unknown]]),
    ...(command.queue === null || command.queue === undefined
      ? []
      : [['queue', command.queue] as [string, unknown]]),
    ...labels.map((label: unknown, i): [string, unknown] => [`labels[${i}]`, label]),
  ]
  for (const [what, text] of names)
    if (!isName(text))
      return refuse('invalid_request', `${what} is ${shown(text)}; expected ${NAME_EXPECTED}`, {
        what,
      })
  const priority = command.priority ?? 0
  if (!Number.isInteger(priority) || priority < -100 || priority > 100)
    return refuse(
      'invalid_request',
      `priority is ${priority}; expected a whole number from -100 to 100`,
      { priority },
    )
  for (const [what, value] of Object.entries({
    delayMs: command.delayMs,
    startAt: command.startAt,
    startByMs: command.startByMs,
    totalLimitMs: command.totalLimitMs,
    attemptLimitMs: command.attemptLimitMs,
  }))
    if (
      value !== null &&
      value !== undefined &&
      (!Number.isInteger(value) || value < 0 || value > 1e15)
    )
      return refuse(
        'invalid_request',
        `${what} is ${value}; expected whole milliseconds of 0 or more`,
        {
          what,
        },
      )
  const bytes = command.input === null ? 0 : Buffer.byteLength(command.input)
  if (bytes > settings.payloadMaxBytes)
    return refuse(
      'payload_too_large',
      `the input has ${bytes} bytes; the limit is ${settings.payloadMaxBytes}. Store it elsewhere and pass a reference`,
      { bytes, limit: settings.payloadMaxBytes },
    )
  return undefined
}

const unknownWorkflow = (command: StartCommand, catalog: Catalog): string => {
  const versions = [...catalog.definitions.values()]
    .filter((each) => each.workflow === command.workflow)
    .map((each) => each.version)
  if (versions.length > 0)
    return `${command.workflow} has no version ${command.version}; known versions: ${versions.join(', ')}`
  const names = [...catalog.current.keys()]
  return `no executor has registered a workflow named ${command.workflow}; ${names.length === 0 ? 'none is known yet: start an executor first' : `known: ${names.slice(0, 10).join(', ')}`}`
}

/** Checks that a definition can be kept, and its limits on a run's row; throws `invalid_config` or `too_many_limits`. */
export const mustFit = (definition: Definition): void => {
  const faults = definitionFaults(definition)
  if (faults.length > 0)
    throw new LeaseholdError(
      'invalid_config',
      `${definition.workflow} version ${definition.version}: ${faults.join('; ')}`,
      { workflow: definition.workflow, faults },
    )
  if (definition.limits.length > 2)
    throw new LeaseholdError(
      'too_many_limits',
      `${definition.workflow} declares ${definition.limits.length} limits; a run has two of its own at most, beside its owner’s and the global one`,
      { workflow: definition.workflow },
    )
}

/** The time limits that a run was given at its start, where they are not those of its version: what follows it keeps them. */
export const limitsGiven = (
  { workflow, version, deadline, createdAt, attemptLimitMs }: Run,
  catalog: PlanContext['catalog'],
): Pick<StartCommand, 'totalLimitMs' | 'attemptLimitMs'> => {
  const declared = definitionOf(catalog, workflow, version)
  const totalLimitMs = deadline === null ? null : deadline - createdAt
  return {
    ...(totalLimitMs === (declared?.totalLimitMs ?? null) ? {} : { totalLimitMs }),
    ...(attemptLimitMs === (declared?.attemptLimitMs ?? null) ? {} : { attemptLimitMs }),
  }
}

/** When a run whose attempt has run into its limit is driven anew, by the retry of its workflow; empty where it is not. */
export const limitRetry = (
  { workflow, version, failures }: Run,
  catalog: PlanContext['catalog'],
): { readonly retryInMs?: number } => {
  const retry = definitionOf(catalog, workflow, version)?.retry ?? {}
  return triesLeft(retry, 1, failures + 1) ? { retryInMs: backoffMs(retry, failures + 1, 0) } : {}
}
