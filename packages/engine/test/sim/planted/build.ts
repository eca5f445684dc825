// Builds the simulator, with one bug in it or none, as a program that plays worlds.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { OutputFile } from 'esbuild'
import { build } from 'esbuild'
import type { Bug, Edit } from './bugs.ts'

const source = fileURLToPath(new URL('../../../src/', import.meta.url))
const player = '../player.ts'
/** Two folders below the package, so that the migrations are found as from the sources. */
const out = fileURLToPath(new URL('../../../dist/planted/', import.meta.url))

let builds = 0

/** How often the text that a bug replaces stands in its file: once, or the bug must be written anew. */
export const occurrences = ({ file, find }: Edit): number =>
  readFileSync(source + file, 'utf8').split(find).length - 1

/** Path of a player with the bug; without a bug, of one with the engine as it is. */
export const buildWith = async (bug: Bug | null, entry = player): Promise<string> => {
  const outfile = `${out}${path.parse(entry).name}-${bug?.name ?? 'none'}.mjs`
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    outfile,
    write: false,
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
          onLoad({ filter: /\.ts$/ }, ({ path: read }) => {
            const edits = [bug, ...(bug.also ? [bug.also] : [])].filter(
              ({ file }) => read === source + file,
            )
            if (edits.length === 0) return undefined
            const contents = edits.reduce(
              (text, { find, replace }) => text.replace(find, () => replace),
              readFileSync(read, 'utf8'),
            )
            return { contents, loader: 'ts' }
          })
        },
      },
    ],
  })
  // in its place when it is whole, since a player of an earlier build of the same may just be starting from there
  const made = `${outfile}.${process.pid}-${++builds}`
  mkdirSync(out, { recursive: true })
  writeFileSync(made, (outputFiles[0] as OutputFile).contents)
  renameSync(made, outfile)
  return outfile
}
