// Where the package lies: two folders up, from here as from a chunk of the build.
import { fileURLToPath } from 'node:url'

export const packageFolder = fileURLToPath(new URL('../../', import.meta.url))
