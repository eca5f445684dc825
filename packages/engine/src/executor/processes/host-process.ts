// Who a process of this host is: its id together with when it began, since ids are given again. Linux says it in `/proc`;
// elsewhere `ps` does.
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'

export interface ProcessIdentity {
  readonly pid: number
  /** When it began, in the host's own unit; null where the host does not say. */
  readonly began: string | null
}

/** A process as the host lists it. One that has ended and is not yet collected is not alive. */
export interface HostProcess extends ProcessIdentity {
  readonly group: number
  readonly alive: boolean
}

/** When the process of this id began. */
export const processBegan = async (pid: number): Promise<string | null> =>
  (await processAt(pid))?.began ?? null

/** The process of this id, or null where there is none. */
export const processAt = async (pid: number): Promise<HostProcess | null> => {
  try {
    return ofStat(pid, await readFile(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    if (process.platform === 'linux') return null
    return (await listed(['-p', String(pid)]))[0] ?? null
  }
}

/** All processes of this host. */
export const processTable = async (): Promise<readonly HostProcess[]> => {
  if (process.platform !== 'linux') return listed(['-A'])
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(pids.map(processAt))
  return found.filter((each) => each !== null)
}

/** A line of `/proc/…/stat`: the fields after a name that may hold anything; the 22nd is when it began. */
const ofStat = (pid: number, line: string): HostProcess => {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    began: fields[19] ?? null,
    group: Number(fields[2]),
    alive: fields[0] !== 'Z' && fields[0] !== 'X',
  }
}

const listed = (which: readonly string[]): Promise<HostProcess[]> =>
  new Promise((resolve) => {
    execFile('ps', [...which, '-o', 'pid=,pgid=,stat=,lstart='], (_error, out) =>
      // `ps` exits with 1 where it has found nobody
      resolve(ofPs(out)),
    )
  })

/** What `ps -o pid=,pgid=,stat=,lstart=` says. */
export const ofPs = (text: string): HostProcess[] =>
  text.split('\n').flatMap((line) => {
    const [, pid, group, state, began] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line) ?? []
    if (pid === undefined || state === undefined || began === undefined) return []
    return [{ pid: Number(pid), group: Number(group), began, alive: !state.startsWith('Z') }]
  })

/** Whether this very process is alive. Where the host does not say when processes began, an id that is in use counts. */
export const isAlive = async ({ pid, began }: ProcessIdentity): Promise<boolean> => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ESRCH') return false
  }
  const now = await processBegan(pid)
  return began === null || now === null || now === began
}
