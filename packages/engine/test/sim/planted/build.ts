// Builds the simulator, with one bug in it or none, as a program that plays worlds.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Bug, Edit } from './bugs.ts'

const source = fileURLToPath(new URL('../../../src/', import.meta.url))
const player = '../player.ts'
/** Two folders below the package, so that the migrations are found as from the sources. */
const out = fileURLToPath(new URL('../../../dist/planted/', import.meta.url))

/** How often the text that a bug replaces stands in its file: once, or the bug must be written anew. */
export const occurrences = ({ file, find }: Edit): number =>
  readFileSync(source + file, 'utf8').split(find).length - 1

/** Path of a player with the bug; without a bug, of one with the engine as it is. */
export const buildWith = async (bug: Bug | null, entry = player): Promise<string> => {
  const outfile = `${out}${bug?.name ?? 'none'}.mjs`
  await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['better-sqlite3'],
    logLevel: 'error',
    plugins: [
      {
        name: 'planted',
        setup({ onLoad }) {
          if (!bug) return
          onLoad({ filter: /\.ts$/ }, ({ path }) => {
            const edits = [bug, ...(bug.also ? [bug.also] : [])].filter(
              ({ file }) => path === source + file,
            )
            if (edits.length === 0) return undefined
            const contents = edits.reduce(
              (text, { find, replace }) => text.replace(find, () => replace),
              readFileSync(path, 'utf8'),
            )
            return { contents, loader: 'ts' }
          })
        },
      },
    ],
  })
  return outfile
}
