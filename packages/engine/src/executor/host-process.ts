// Who a process of this host is: its id together with when it began, since ids are given again.
import { readFile } from 'node:fs/promises'

export interface ProcessIdentity {
  readonly pid: number
  /** When it began, in the host's own unit; null where the host does not say. */
  readonly began: string | null
}

/** When the process of this id began: the 22nd field of its line on Linux, after a name that may hold anything. */
export const processBegan = async (pid: number): Promise<string | null> => {
  try {
    const line = await readFile(`/proc/${pid}/stat`, 'utf8')
    return line.slice(line.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

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
