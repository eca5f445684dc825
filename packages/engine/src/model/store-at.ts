// Where a store is, as configuration names it.
/** A SQLite file, which one process owns, or a PostgreSQL database, which any number of them share. */
export type StoreAt =
  | { readonly file: string }
  | {
      /** `postgres://…`, as libpq reads it. */
      readonly database: string
      /** Where to listen for wake-ups, when `database` leads through a pooler that gives each transaction another connection. */
      readonly listen?: string | null
      /** Connections at most, of which one is kept for renewals where there are two or more. Default 10. */
      readonly connections?: number
      /** How long a migration waits for a table that another transaction uses, in ms. Default 5,000. */
      readonly migrationLockMs?: number
      /** The schema of the database that is Leasehold's; made where it is not there. Default `public`. */
      readonly schema?: string
    }

/** One store, or the databases that are joined as one, in their order. */
export type StoresAt = StoreAt | readonly StoreAt[]

export const storesIn = (at: StoresAt): readonly StoreAt[] => ('map' in at ? at : [at])

/** As `nameOf`, of several in their order. */
export const namesOf = (at: StoresAt): string => storesIn(at).map(nameOf).join(', ')

/** The store as people name it: no password is shown. */
export const nameOf = (store: StoreAt): string => {
  if ('file' in store) return store.file
  const url = new URL(store.database)
  return `${url.protocol}//${url.host}${url.pathname}`
}
