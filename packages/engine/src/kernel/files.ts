// Which file stands at a path, as a port: two looks that give the same text found the same file.
import { statSync } from 'node:fs'

export interface Files {
  /** A text of its own for each file of the machine; null where none stands there, undefined where nobody may look. */
  identity(path: string): string | null | undefined
}

export const systemFiles: Files = {
  identity(path) {
    try {
      const { dev, ino } = statSync(path, { bigint: true })
      return `${dev}:${ino}`
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      return code === 'ENOENT' || code === 'ENOTDIR' ? null : undefined
    }
  },
}
