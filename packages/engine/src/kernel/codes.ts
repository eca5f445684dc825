// Every code that the engine can answer with: what it means, and what to do. `docs/errors.md` is made from this table,
// the HTTP status of a problem is read from it, and a code that is not here does not compile.
interface Code {
  readonly kind: 'refusal' | 'fault' | 'defect' | 'failure'
  /** HTTP status of the problem document. */
  readonly status: number
  readonly what: string
  readonly todo: string
}

const table = {
  // refusals: an expected no; nothing was changed
  not_found: {
    kind: 'refusal',
    status: 404,
    what: 'No such thing is stored.',
    todo: 'Check its id or name. What has ended may have been removed by retention.',
  },
  unknown_workflow: {
    kind: 'refusal',
    status: 404,
    what: 'No executor has ever registered this workflow or version.',
    todo: 'Start an executor that serves it, or correct the name.',
  },
  unknown_route: {
    kind: 'refusal',
    status: 404,
    what: 'The server has no such route.',
    todo: 'See /openapi.json for the routes.',
  },
  method_not_allowed: {
    kind: 'refusal',
    status: 405,
    what: 'The route is not called by this method.',
    todo: 'Use one of those that the header `Allow` names.',
  },
  invalid_request: {
    kind: 'refusal',
    status: 400,
    what: 'The request does not fit its schema.',
    todo: 'Correct the fields that the answer names.',
  },
  headers_too_large: {
    kind: 'refusal',
    status: 431,
    what: 'The head of the request is larger than the server reads.',
    todo: 'Send fewer or shorter headers.',
  },
  request_timeout: {
    kind: 'refusal',
    status: 408,
    what: 'The request did not arrive in time.',
    todo: 'Send it again.',
  },
  invalid_input: {
    kind: 'refusal',
    status: 422,
    what: 'The input does not fit the workflow’s schema.',
    todo: 'Correct the paths that the answer names.',
  },
  payload_too_large: {
    kind: 'refusal',
    status: 413,
    what: 'A payload is over its limit.',
    todo: 'Store the data elsewhere and pass a reference, or raise the limit.',
  },
  key_reused: {
    kind: 'refusal',
    status: 409,
    what: 'The key belongs to a run with another input.',
    todo: 'Use another key, or send the first input.',
  },
  command_reused: {
    kind: 'refusal',
    status: 422,
    what: 'The command id was used for another request.',
    todo: 'Mint a new id for each new request.',
  },
  stale_attempt: {
    kind: 'refusal',
    status: 409,
    what: 'Another attempt holds the run, or nobody does.',
    todo: 'Drop this attempt; its work is not needed.',
  },
  already_ended: {
    kind: 'refusal',
    status: 409,
    what: 'The run has ended; an end is final.',
    todo: 'Start it again with retry if that is wanted.',
  },
  already_active: {
    kind: 'refusal',
    status: 409,
    what: 'The run is still active.',
    todo: 'Wait for its end, or cancel it first.',
  },
  already_decided: {
    kind: 'refusal',
    status: 409,
    what: 'The approval has its decision.',
    todo: 'Nothing: the answer carries the first decision.',
  },
  approval_lapsed: {
    kind: 'refusal',
    status: 409,
    what: 'The deadline of the approval has passed.',
    todo: 'Ask again with a new approval.',
  },
  not_allowed: {
    kind: 'refusal',
    status: 403,
    what: 'This actor may not do this.',
    todo: 'Ask one of those whom the answer names.',
  },
  not_paused: { kind: 'refusal', status: 409, what: 'It is not paused.', todo: 'Nothing.' },
  delivery_state: {
    kind: 'refusal',
    status: 409,
    what: 'The delivery is in a state in which this cannot be done to it.',
    todo: 'Try anew one that is dead, or drop one that is due or dead.',
  },
  trigger_paused: {
    kind: 'refusal',
    status: 503,
    what: 'The trigger is paused and takes no deliveries.',
    todo: 'Bring the delivery again once it is resumed.',
  },
  schedule_exists: {
    kind: 'refusal',
    status: 409,
    what: 'Another schedule has this name.',
    todo: 'Update that schedule, or choose another name.',
  },
  not_held: {
    kind: 'refusal',
    status: 409,
    what: 'No attempt holds the run.',
    todo: 'Nothing: it is already free.',
  },
  held: {
    kind: 'refusal',
    status: 409,
    what: 'An attempt holds the run.',
    todo: 'Wait for it, hand the run back, or cancel it.',
  },
  limit_full: {
    kind: 'refusal',
    status: 429,
    what: 'A limit is full and its policy is to reject.',
    todo: 'Try later; the answer lists the holders.',
  },
  signals_full: {
    kind: 'refusal',
    status: 429,
    what: 'The run has too many unread signals.',
    todo: 'Wait until it has taken some.',
  },
  session_ended: {
    kind: 'refusal',
    status: 409,
    what: 'The session has been ended.',
    todo: 'Drop what it held and register anew.',
  },
  claim_superseded: {
    kind: 'refusal',
    status: 409,
    what: 'A claim with a higher number has been made.',
    todo: 'Drop the older claim’s answer.',
  },
  connection_superseded: {
    kind: 'refusal',
    status: 409,
    what: 'A newer connection of the session has been made.',
    todo: 'Speak over the newer connection; this one is closed.',
  },
  unauthorized: {
    kind: 'refusal',
    status: 401,
    what: 'The request carries no valid token.',
    todo: 'Send `authorization: Bearer …`.',
  },
  forbidden_origin: {
    kind: 'refusal',
    status: 403,
    what: 'The Host or Origin of the request is not this server’s.',
    todo: 'Call the server by its own address.',
  },
  incompatible_protocol: {
    kind: 'refusal',
    status: 426,
    what: 'The executor speaks another protocol version.',
    todo: 'Upgrade the older of the two.',
  },
  engine_closed: {
    kind: 'refusal',
    status: 410,
    what: 'The embedded engine has been closed.',
    todo: 'Open another one; it finds all runs as they are.',
  },
  draining: {
    kind: 'refusal',
    status: 503,
    what: 'The process is shutting down.',
    todo: 'Try another replica, or try again.',
  },
  server_busy: {
    kind: 'refusal',
    status: 503,
    what: 'The server has as much at hand as it can hold.',
    todo: 'Try again in a moment.',
  },
  depth_limit: {
    kind: 'refusal',
    status: 422,
    what: 'Runs are nested too deeply.',
    todo: 'Look for a workflow that starts itself; raise the limit if it is meant.',
  },
  fan_out_limit: {
    kind: 'refusal',
    status: 422,
    what: 'The run has started too many children.',
    todo: 'Start fewer, or split the work over several parents.',
  },
  duplicate_workflow: {
    kind: 'refusal',
    status: 409,
    what: 'Two workflows have the same name and version.',
    todo: 'Rename one.',
  },
  too_many_limits: {
    kind: 'refusal',
    status: 422,
    what: 'A run can have four limits at most: owner, global and two keys.',
    todo: 'Remove a limit.',
  },
  // faults: the world failed; the edge retries
  store_unavailable: {
    kind: 'fault',
    status: 503,
    what: 'The store does not answer.',
    todo: 'Repeat; check the database.',
  },
  store_busy: {
    kind: 'fault',
    status: 503,
    what: 'The row was locked for too long.',
    todo: 'Repeat the same request.',
  },
  store_full: {
    kind: 'fault',
    status: 503,
    what: 'The disk of the store is full.',
    todo: 'Free space; the engine goes on by itself.',
  },
  store_read_only: {
    kind: 'fault',
    status: 503,
    what: 'The store refuses writes.',
    todo: 'Check its permissions or failover state.',
  },
  unknown_outcome: {
    kind: 'fault',
    status: 503,
    what: 'The request may or may not have been done.',
    todo: 'Repeat it with the same command id.',
  },
  peer_unreachable: {
    kind: 'fault',
    status: 503,
    what: 'The server does not answer.',
    todo: 'Check its address; the client repeats by itself.',
  },
  owned_elsewhere: {
    kind: 'fault',
    status: 503,
    what: 'Another process owns the SQLite file.',
    todo: 'Stop it, or talk to it over HTTP.',
  },
  store_moved: {
    kind: 'fault',
    status: 503,
    what: 'A file of the store was moved, replaced or deleted while a process had it open.',
    todo: 'Put it back, or stop the process before another file takes its place; then start again.',
  },
  store_transferred: {
    kind: 'fault',
    status: 503,
    what: 'What the SQLite file held was moved to a PostgreSQL database.',
    todo: 'Name that database.',
  },
  not_a_database: {
    kind: 'fault',
    status: 500,
    what: 'The file is not a Leasehold database.',
    todo: 'Name another file; where runs were kept in it, put a backup in its place.',
  },
  store_damaged: {
    kind: 'fault',
    status: 500,
    what: 'The SQLite file, or the lock beside it, is damaged.',
    todo: 'While no process uses it: put a backup in the place of a damaged file, then `leasehold doctor --after-restore`; delete a damaged lock.',
  },
  row_unreadable: {
    kind: 'fault',
    status: 500,
    what: 'A stored row cannot be read: somebody changed it in the database.',
    todo: 'Put right what the message names; other rows are not concerned.',
  },
  schema_newer: {
    kind: 'fault',
    status: 500,
    what: 'The store’s schema is newer than this program knows.',
    todo: 'Upgrade the program.',
  },
  schema_changed: {
    kind: 'fault',
    status: 500,
    what: 'An applied migration differs from this program’s.',
    todo: 'Use the build that applied it; migrations never change.',
  },
  invalid_config: {
    kind: 'fault',
    status: 500,
    what: 'The configuration has faults.',
    todo: 'Correct all that the message lists.',
  },
  // defects: our own mistake; the process that found it stops
  internal_error: {
    kind: 'defect',
    status: 500,
    what: 'The server met a mistake of its own.',
    todo: 'Report it with the server’s log; whether the request was done is unknown.',
  },
  // failures: the user's code; stored as data
  not_serializable: {
    kind: 'failure',
    status: 422,
    what: 'A value cannot be carried as JSON.',
    todo: 'Use plain JSON values; the message names the path.',
  },
  duplicate_name: {
    kind: 'failure',
    status: 422,
    what: 'A name was used twice in one scope.',
    todo: 'Give each step of a scope its own name, or use map or scope.',
  },
  nondeterminism: {
    kind: 'failure',
    status: 409,
    what: 'The function departs from its journal.',
    todo: 'Restore the code, guard the change with patched(), or move the run to another version.',
  },
  step_timeout: {
    kind: 'failure',
    status: 408,
    what: 'A step ran into its limit.',
    todo: 'Raise the limit or make the step shorter.',
  },
  prepare_timeout: {
    kind: 'failure',
    status: 408,
    what: 'A preparation ran into its limit.',
    todo: 'Raise prepareLimit or make the preparation shorter.',
  },
  unawaited_step: {
    kind: 'failure',
    status: 422,
    what: 'The function returned while a step was not awaited.',
    todo: 'Await every step.',
  },
  late_call: {
    kind: 'failure',
    status: 422,
    what: 'The context was used after the function had returned.',
    todo: 'Use the context only while the function runs.',
  },
  nested_step: {
    kind: 'failure',
    status: 422,
    what: 'The context was used inside a step’s body.',
    todo: 'Call steps from the function, not from a step.',
  },
  invalid_duration: {
    kind: 'failure',
    status: 422,
    what: 'A duration or instant is not a number that a timer can keep.',
    todo: 'Give a finite number of milliseconds of zero or more, or a text such as 10m.',
  },
  invalid_output: {
    kind: 'failure',
    status: 422,
    what: 'A result does not fit its schema.',
    todo: 'Correct the code or the schema.',
  },
  approval_denied: {
    kind: 'failure',
    status: 422,
    what: 'The approval was denied.',
    todo: 'Handle the decision in the function if the run is to go on.',
  },
  child_failed: {
    kind: 'failure',
    status: 422,
    what: 'A child run did not succeed.',
    todo: 'See the child’s own error.',
  },
  journal_full: {
    kind: 'failure',
    status: 413,
    what: 'The journal has reached its limit.',
    todo: 'Use continueAs, or raise the limit.',
  },
} as const satisfies Readonly<Record<string, Code>>

export type ErrorCode = keyof typeof table
type OfKind<K extends Code['kind']> = {
  [C in ErrorCode]: (typeof table)[C]['kind'] extends K ? C : never
}[ErrorCode]
export type RefusalCode = OfKind<'refusal'>
export type FaultCode = OfKind<'fault'>

export const codes: Readonly<Record<ErrorCode, Code>> = table
