// A user's own transaction on PostgreSQL (RUN-21): what it asks of the engine is one order each, put there by the user's own
// connection, with a word to the servers that comes through when it commits. It locks nothing and knows no driver.
import type { PlacedOrder } from './user-transaction.ts'

/** Runs one statement inside the user's transaction. The places `$1`, `$2` … stand in the text in their order, once each. */
export type RunStatement = (text: string, values: readonly string[]) => Promise<unknown>

/** Of a schema of the database, whose name may be any text. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** What the servers of a schema listen to. */
export const channelOf = (schema: string): string => `leasehold_${schema}`

// one statement, so that it is one round trip; what notifies gives no value that every library could read
const textOf = (schema: string): string =>
  `with placed as (insert into ${quoted(schema)}.orders (id, kind, run, payload, created_at)
     values ($1, $2, $3, $4, (date_part('epoch', statement_timestamp()) * 1000)::bigint) returning id)
   select pg_notify($5, $6)::text as told from placed`

/** Places an order, to be applied by ordinary transitions once the transaction has committed. */
export const placeOrder = async (
  run: RunStatement,
  schema: string,
  { id, kind, run: of, payload }: PlacedOrder,
): Promise<void> => {
  await run(textOf(schema), [
    id,
    kind,
    of,
    JSON.stringify(payload),
    channelOf(schema),
    'transaction said {"orders":true}',
  ])
}
