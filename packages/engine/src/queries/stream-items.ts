// What a run has appended to one of its streams, with how the run stands.
import type { RunStatus } from '../model/run.ts'
import type { Steps, Tx } from '../store/sql.ts'
import { ask } from '../store/sql.ts'
import { streamAfter } from '../store/tables/journal.ts'
import { viewsOf } from '../store/tables/views.ts'
import { value } from './run-view.ts'

export interface StreamPage {
  /** Null where there is no such run any more. */
  readonly status: RunStatus | null
  readonly reason: string | null
  readonly items: readonly { readonly seq: number; readonly at: number; readonly data: unknown }[]
}

export function* streamItems(
  _tx: Tx,
  run: string,
  name: string,
  after: number,
  most: number,
): Steps<StreamPage> {
  const [[row], items] = yield* ask(viewsOf([run]), streamAfter(run, name, after, most))
  return {
    status: (row?.status as RunStatus | undefined) ?? null,
    reason: row?.reason ?? null,
    items: items.map((item) => ({ seq: item.seq, at: item.at, data: value(item, 'data') })),
  }
}
