// Definitions of workflows as sessions have announced them, and which version of each new runs start on (workflows).
import type { Statement } from '../sql.ts'
import { rows, sql, statement } from '../sql.ts'

export interface DefinitionRow {
  readonly workflow: string
  readonly version: string
  readonly queue: string
  readonly definition: string
  readonly current_version: string
}
const known = sql<Pick<DefinitionRow, 'workflow' | 'version' | 'definition'>>(
  'definitions.known',
  `select d.workflow, d.version, d.definition from {rows $1 as b: workflow text, version text} join definitions d on d.workflow = b.workflow and d.version = b.version
    order by d.workflow, d.version {lock d}`,
)
/** What is stored of these versions, locked: of two that register at once the second sees what the first has put. */
export const knownDefinitions = (
  items: readonly { workflow: string; version: string }[],
): Statement<Pick<DefinitionRow, 'workflow' | 'version' | 'definition'>> =>
  statement(known, rows(items.map(({ workflow, version }) => ({ workflow, version }))))

const define = sql<{ workflow: string }>(
  'definitions.put',
  `insert into definitions (workflow, version, queue, definition, created_at, updated_at)
   select b.workflow, b.version, b.queue, b.definition, {now}, {now} from {rows $1 as b: workflow text, version text, queue text, definition text} where true
   on conflict (workflow, version) do update set queue = excluded.queue, definition = excluded.definition, updated_at = excluded.updated_at returning workflow`,
)
export const putDefinitions = (
  items: readonly Omit<DefinitionRow, 'current_version'>[],
): Statement<{ workflow: string }> => statement(define, rows(items))

const current = sql<{ name: string }>(
  'workflows.put',
  `insert into workflows (name, current_version, updated_at)
   select fresh.workflow, fresh.version, {now} from (
     select b.workflow, b.version, row_number() over (partition by b.workflow order by b.n desc) as place
       from {rows $1 as b: workflow text, version text, n int}
      where not exists (select 1 from definitions d where d.workflow = b.workflow and d.version = b.version)) fresh
    where fresh.place = 1 order by fresh.workflow
   on conflict (name) do update set current_version = excluded.current_version, updated_at = excluded.updated_at returning name`,
)
/** The last version that was never seen before becomes current; one that is registered again does not. Asked before `putDefinitions`. */
export const makeCurrent = (
  items: readonly { workflow: string; version: string }[],
): Statement<{ name: string }> =>
  statement(current, rows(items.map(({ workflow, version }, n) => ({ workflow, version, n }))))

const setCurrent = sql<{ name: string }>(
  'workflows.set_current',
  `update workflows set current_version = $2, updated_at = case when updated_at < {now} then {now} else updated_at + 1 end where name = $1 and exists (select 1 from definitions d where d.workflow = $1 and d.version = $2) returning name`,
)
export const setCurrentVersion = (workflow: string, version: string): Statement<{ name: string }> =>
  statement(setCurrent, workflow, version)

const definitions = sql<DefinitionRow>(
  'definitions.all',
  `select d.workflow, d.version, d.queue, d.definition, w.current_version from definitions d join workflows w on w.name = d.workflow order by d.workflow, d.created_at`,
)
export const allDefinitions = (): Statement<DefinitionRow> => statement(definitions)

const marked = sql<{ mark: string }>(
  'definitions.mark',
  `select (select count(*) || ' ' || coalesce(sum(d.updated_at), 0) from definitions d) || ' ' || (select count(*) || ' ' || coalesce(sum(w.updated_at), 0) from workflows w)
          || ' ' || (select count(*) from lanes)
          || ' ' || coalesce((select coalesce(l.operator_value, l.code_value) from limits l where l.key = 'global'), -1) as mark`,
)
/** Differs when definitions, current versions, lanes or the global limit have changed. */
export const catalogMark = (): Statement<{ mark: string }> => statement(marked)
