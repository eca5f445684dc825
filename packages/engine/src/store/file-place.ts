// Where a SQLite file really stands. SQLite and our owner lock keep files of their own beside it, by its name: so whoever comes
// by another name of the same file must be led to the same ones, or be refused.
import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { Fault } from '../kernel/errors.ts'

/** The one path of a file, through all symbolic links; throws `store_unavailable` where it has, or can have, no such path. */
export const placeOf = (file: string): string => {
  if (file === ':memory:') return file
  if (file === '' || file.includes('\0'))
    throw refused(
      file,
      file === '' ? 'it has no name; name a path' : 'its name holds a NUL character',
    )
  let place: string
  try {
    place = followed(file)
  } catch (error) {
    throw refused(file, (error as Error).message, error)
  }
  const found = statSync(place, { throwIfNoEntry: false })
  if (found?.isDirectory()) throw refused(file, 'it is a folder; name a file in it')
  if (found && found.nlink > 1)
    throw refused(
      file,
      `it has ${found.nlink} names (hard links), and under each of them SQLite would keep another log. Find them with ` +
        `\`find / -xdev -samefile ${place}\` and remove all but one, or make a copy`,
    )
  return place
}

/** As `realpath`, also for a file that is still to be made. */
const followed = (file: string): string => {
  try {
    return realpathSync.native(file)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink())
    return followed(path.resolve(path.dirname(file), readlinkSync(file)))
  try {
    return path.join(realpathSync.native(path.dirname(file)), path.basename(file))
  } catch (error) {
    if (!isMissing(error)) throw error
    // that there is no folder is said by whoever opens it
    return path.resolve(file)
  }
}

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

const refused = (file: string, why: string, cause?: unknown): Fault =>
  new Fault(
    'store_unavailable',
    `${JSON.stringify(file)} cannot be the file of a store: ${why}`,
    cause === undefined ? { retryable: false } : { retryable: false, cause },
  )
