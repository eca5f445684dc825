// Where the files of preparations live: one directory an attempt, under one of its session, which says whose it is. What a
// session left that is gone is found by that label and removed at the next start on this host; nobody else's is touched.
import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { LeaseholdError } from '../../kernel/errors.ts'
import { encode } from '../../kernel/json.ts'
import type { ProcessIdentity } from '../processes/host-process.ts'
import { isAlive, processBegan } from '../processes/host-process.ts'

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
  /** Writes down what an attempt holds that must be released, for a later start in case this process is killed. */
  note(label: ScratchLabel, held: HeldNote): Promise<void>
  /** It has been released. */
  forget(label: ScratchLabel): Promise<void>
  /** Writes down which process drives an attempt, for a later start in case this process is killed. */
  noteProcess(label: ScratchLabel, leader: ProcessIdentity): Promise<void>
  /** Nothing of it is alive. */
  forgetProcess(label: ScratchLabel): Promise<void>
  /**
   * Removes the directories that sessions left whose processes are gone, and takes over what they noted: from here on those
   * notes are of this session, and of no other that starts at the same time. `end` is called with each process of theirs
   * before anything of its session is removed; where it says no, that process is still there.
   */
  recover(session: string, end: (left: LeftProcess) => Promise<boolean>): Promise<Recovered>
}

/** What an attempt holds, as the workflow that took it can release it. */
export interface HeldNote {
  readonly workflow: string
  readonly version: string
  /** JSON text of what the preparation returned. */
  readonly prepared: string | null
}

/** A process that drove an attempt of a session that is gone; the label is the one that it carries. */
export interface LeftProcess {
  readonly label: ScratchLabel
  readonly leader: ProcessIdentity
}

export interface Recovered {
  readonly removed: readonly string[]
  readonly held: readonly { readonly label: ScratchLabel; readonly note: HeldNote }[]
  /** Processes that are still alive, though all was done to end them. */
  readonly alive: readonly LeftProcess[]
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
  const at = (session: string): Promise<string> => {
    const made = sessions.get(session) ?? sessionAt(session)
    sessions.set(session, made)
    made.catch(() => sessions.delete(session))
    return made
  }
  return {
    async make({ session, run, attempt }) {
      const path = join(await at(session), `${run}.${attempt}`)
      await mkdir(path, { mode: 0o700 })
      return path
    },
    remove: (directory) => rm(directory, { recursive: true, force: true, maxRetries: 3 }),
    async note(label, held) {
      const path = join(await at(label.session), noteOf(label))
      await writeFile(path, encode({ ...label, ...held }) ?? '', { mode: 0o600 })
    },
    forget: (label) => rm(join(root, label.session, noteOf(label)), { force: true }),
    async noteProcess(label, leader) {
      const path = join(await at(label.session), noteOf(label, PROCESS))
      await writeFile(path, encode({ label, leader }) ?? '', { mode: 0o600 })
    },
    forgetProcess: (label) =>
      rm(join(root, label.session, noteOf(label, PROCESS)), { force: true }),
    async recover(session, end) {
      const alive: LeftProcess[] = []
      const removed: string[] = []
      const held: Recovered['held'][number][] = []
      for (const gone of await namesIn(root)) {
        const path = join(root, gone)
        const owner = await ownerOf(path)
        if (gone === session || owner === null || (await isAlive(owner))) continue
        const names = await namesIn(path)
        const left: LeftProcess[] = []
        for (const name of names.filter((each) => each.endsWith(PROCESS))) {
          const found = await processNoted(join(path, name))
          if (found && !(await end(found))) left.push(found)
        }
        // what a process may still write to is left to the next start
        alive.push(...left)
        if (left.length > 0) continue
        for (const name of names) {
          if (name === OWNER || name.endsWith(PROCESS)) continue
          if (!name.endsWith(NOTE)) removed.push(join(path, name))
          else {
            const taken = await takeOver(join(path, name), join(await at(session), name), session)
            if (taken) held.push(taken)
          }
        }
        await rm(path, { recursive: true, force: true, maxRetries: 3 })
      }
      return { removed, held, alive }
    },
  }
}

const NOTE = '.held.json'
const PROCESS = '.process.json'
const noteOf = ({ run, attempt }: ScratchLabel, of = NOTE): string => `${run}.${attempt}${of}`

/** Of a note that cannot be read nobody is known, so nobody is struck. */
const processNoted = async (path: string): Promise<LeftProcess | null> => {
  try {
    const { label, leader } = JSON.parse(await readFile(path, 'utf8')) as LeftProcess
    return Number.isInteger(leader.pid) && leader.pid > 1 ? { label, leader } : null
  } catch {
    return null
  }
}

/** Of several that start at once one gets the file. What cannot be read is held all the same, by nobody that is known. */
const takeOver = async (
  from: string,
  to: string,
  session: string,
): Promise<Recovered['held'][number] | null> => {
  try {
    await rename(from, to)
  } catch {
    return null
  }
  const name = basename(to, NOTE)
  const dot = name.lastIndexOf('.')
  const label = { session, run: name.slice(0, dot), attempt: Number(name.slice(dot + 1)) }
  try {
    const { workflow, version, prepared } = JSON.parse(await readFile(to, 'utf8')) as HeldNote
    return { label, note: { workflow, version, prepared } }
  } catch {
    return { label, note: { workflow: 'an unreadable note', version: '?', prepared: null } }
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
