// The definitions of workflows as this process knows them, with their current versions and lanes: read when it begins, and anew
// when they have changed.
import type { Log } from '../kernel/log.ts'
import { readOr, storedObject } from '../kernel/stored.ts'
import type { Catalog, Definition } from '../model/definition.ts'
import { definitionKey, emptyCatalog } from '../model/definition.ts'
import type { StartCommand } from '../model/start.ts'
import { ask } from '../store/sql.ts'
import type { Store } from '../store/store.ts'
import { allDefinitions } from '../store/tables/definitions.ts'
import { allLanes } from '../store/tables/lanes.ts'
import { limitsByKey } from '../store/tables/limits.ts'
import type { Lanes } from './claims/lanes.ts'

export interface Definitions {
  readonly catalog: Catalog
  reload(): Promise<void>
  /** Reads them anew where one of these is not known: another process may have registered it. */
  learn(starts: readonly Pick<StartCommand, 'workflow' | 'version'>[]): Promise<void>
}

interface Parts {
  readonly store: Store
  readonly lanes: Lanes
  readonly log: Log
}

/** Reads all definitions, and tells `lanes` of those that there are. */
export const keepDefinitions = async ({ store, lanes, log }: Parts): Promise<Definitions> => {
  let catalog: Catalog = emptyCatalog
  let looks = 0
  let newest = 0
  const reload = async (): Promise<void> => {
    const look = ++looks
    const { definitions, known, global } = await store.read(function* () {
      const [definitions, known, global] = yield* ask(
        allDefinitions(),
        allLanes(),
        limitsByKey(['global']),
      )
      return { definitions, known, global }
    })
    for (const { lane, tag } of known) lanes.add(lane, tag)
    // one that began earlier and comes back later may not have seen what another has shown since
    if (look < newest) return
    newest = look
    const row = global[0]
    catalog = {
      definitions: new Map(
        definitions.flatMap(({ workflow, version, definition }) =>
          readOr<[string, Definition][]>(
            () => {
              const what = `the definition of ${workflow} version ${version}`
              const read = storedObject(definition, what) as unknown as Definition
              return [[definitionKey(workflow, version), read]]
            },
            (sentence) => {
              // its executor mends it when it registers again
              log.error('definition.unreadable', { workflow, version, sentence })
              return []
            },
          ),
        ),
      ),
      current: new Map(definitions.map((each) => [each.workflow, each.current_version])),
      globalLimit: (row?.operator_value ?? row?.code_value ?? null) !== null,
    }
  }
  await reload()

  return {
    get catalog() {
      return catalog
    },
    reload,
    async learn(wanted) {
      // a file has one server, which knows all that was registered
      if (store.kind === 'sqlite') return
      const unknown = wanted.some(({ workflow, version }) =>
        typeof version === 'string'
          ? !catalog.definitions.has(definitionKey(workflow, version))
          : !catalog.current.has(workflow),
      )
      if (unknown) await reload()
    },
  }
}
