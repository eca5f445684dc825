// Where the programs of this package lie that an executor starts: one folder up and down again, from here as from a chunk of
// the build.
export const programs = {
  /** The command `leasehold`. */
  command: new URL('../cli/main.js', import.meta.url),
  /** Drives one isolated attempt. */
  body: new URL('../programs/body.js', import.meta.url),
  /** Threads that renew, over HTTP and in the database. */
  renewalsHttp: new URL('../programs/renewals-http.js', import.meta.url),
  renewalsPostgres: new URL('../programs/renewals-postgres.js', import.meta.url),
}
