// Where the files of preparations live: one directory an attempt, under one of its session, which says whose it is. What a
// session left that is gone is found by that label and removed at the next start on this host; nobody else's is touched.
import { lstat, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LeaseholdError } from '../kernel/errors.ts'
import { encode } from '../kernel/json.ts'
import type { ProcessIdentity } from './host-process.ts'
import { isAlive, processBegan } from './host-process.ts'

/** Whose a directory is. */
export interface ScratchLabel {
  readonly session: string
  readonly run: string
  readonly attempt: number
}

export interface Scratch {
  /** Makes the directory of an attempt and gives its path. */
  make(label: ScratchLabel): Promise<string>
  remove(directory: string): Promise<void>
  /** Removes what sessions left whose processes are gone; the directories that it removed. */
  recover(): Promise<readonly string[]>
}

const OWNER = 'owner.json'

/** Directories under `root` on this host, of this process. */
export const systemScratch = (root: string): Scratch => {
  const sessions = new Map<string, Promise<string>>()
  const sessionAt = async (session: string): Promise<string> => {
    await mkdir(root, { recursive: true, mode: 0o700 })
    await mustBeOurs(root)
    const path = join(root, session)
    await mkdir(path, { recursive: true, mode: 0o700 })
    const owner: ProcessIdentity = { pid: process.pid, began: await processBegan(process.pid) }
    await writeFile(join(path, OWNER), encode(owner) ?? '')
    return path
  }
  return {
    async make({ session, run, attempt }) {
      let made = sessions.get(session)
      if (!made) sessions.set(session, (made = sessionAt(session)))
      try {
        const path = join(await made, `${run}.${attempt}`)
        await mkdir(path, { mode: 0o700 })
        return path
      } catch (error) {
        sessions.delete(session)
        throw error
      }
    },
    remove: (directory) => rm(directory, { recursive: true, force: true, maxRetries: 3 }),
    async recover() {
      const removed: string[] = []
      for (const session of await namesIn(root)) {
        const path = join(root, session)
        const owner = await ownerOf(path)
        if (owner === null || (await isAlive(owner))) continue
        for (const name of await namesIn(path)) if (name !== OWNER) removed.push(join(path, name))
        await rm(path, { recursive: true, force: true, maxRetries: 3 })
      }
      return removed
    },
  }
}

/** In the system's temporary folder, one directory a user. */
export const temporaryScratch = (): Scratch =>
  systemScratch(join(tmpdir(), `leasehold-${process.getuid?.() ?? 'scratch'}`))

const namesIn = async (path: string): Promise<string[]> => {
  try {
    return await readdir(path)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return []
    throw error
  }
}

/** Nobody's that cannot be read: what is not sure to be of a session that is gone stays. */
const ownerOf = async (path: string): Promise<ProcessIdentity | null> => {
  try {
    const { pid, began } = JSON.parse(await readFile(join(path, OWNER), 'utf8')) as ProcessIdentity
    return Number.isInteger(pid) && pid > 0 && (began === null || typeof began === 'string')
      ? { pid, began }
      : null
  } catch {
    return null
  }
}

/** In a directory of another user, or a link to one, files could be read and replaced. */
const mustBeOurs = async (root: string): Promise<void> => {
  const uid = process.getuid?.() ?? null
  const found = await lstat(root)
  if (!found.isDirectory() || (uid !== null && found.uid !== uid))
    throw new LeaseholdError(
      'invalid_config',
      `the scratch directory ${root} is ${found.isDirectory() ? `of the user ${found.uid}` : 'no directory'}; expected a directory of this user; set another one`,
      { root },
    )
}
