// The last part of `npm run build`: the programs that are published, with all JavaScript that they need inside, so that a
// command starts from a few files. What entry points share lies in chunks, so that a class is one class wherever it is
// imported from. All is made beside `dist` and takes its place there only when it is whole.
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs' // prettier-ignore
import path from 'node:path'
import { build } from 'esbuild'
import { isMain, root } from './files.ts'

const engine = path.join(root, 'packages/engine')
const dist = path.join(engine, 'dist')

/** What other commands keep in `dist`: the declarations, the measurements, the simulator’s planted bugs. */
const OTHERS = new Set(['types', 'bench', 'planted'])

/** Dependencies for the sake of their declarations: what runs of them is inside. */
const DECLARED = new Set(['zod'])

/** What is imported, and what is started. */
const entries = ['entry', 'programs'].flatMap((folder) =>
  readdirSync(path.join(engine, 'src', folder)).map((file) => `${folder}/${path.parse(file).name}`),
)

const bundle = async (outdir: string): Promise<readonly string[]> => {
  const { dependencies } = JSON.parse(readFileSync(path.join(engine, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: ['cli/main', ...entries].map((out) => ({
      in: `packages/engine/src/${out}.ts`,
      out,
    })),
    // its place in the end, which is what source maps count from
    outdir: dist,
    write: false,
    bundle: true,
    splitting: true,
    // two folders below the package, as the folders of `src` are: what is found from there is found from here
    chunkNames: 'chunks/[name]-[hash]',
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    external: Object.keys(dependencies).filter((name) => !DECLARED.has(name)),
    // what is CommonJS inside asks Node for its modules
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    sourcemap: 'linked',
    metafile: true,
    logLevel: 'warning',
  })
  for (const { path: file, contents } of outputFiles) {
    const made = path.join(outdir, path.relative(dist, file))
    mkdirSync(path.dirname(made), { recursive: true })
    writeFileSync(made, contents)
  }
  return Object.keys(metafile.inputs)
}

/** The package that a file lies in: its folder and its name. */
const PACKAGE = /^(.*node_modules\/((?:@[^/]+\/)?[^/]+))\//
const LICENCES = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license']

/** The licences of the packages that these files come from, by name. */
export const licences = (
  files: readonly string[],
  read: (file: string) => string | null,
): string => {
  const packages = new Map(
    files.flatMap((file) => {
      const [, folder, name] = PACKAGE.exec(file) ?? []
      return folder && name ? [[name, folder] as const] : []
    }),
  )
  return [...packages]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, folder]) => {
      const text = LICENCES.map((file) => read(`${folder}/${file}`)).find((found) => found !== null)
      if (!text) throw new Error(`${name} would be published without its licence`)
      return `${name}\n\n${text.trim()}\n`
    })
    .join(`\n${'-'.repeat(80)}\n\n`)
}

const readOrNull = (file: string): string | null => {
  const full = path.join(root, file)
  return existsSync(full) ? readFileSync(full, 'utf8') : null
}

const main = async (): Promise<void> => {
  const made = path.join(dist, `made-${process.pid}`)
  try {
    const files = await bundle(made)
    writeFileSync(path.join(made, 'licences.txt'), licences(files, readOrNull))
    cpSync(path.join(root, 'packages/dashboard/dist'), path.join(made, 'dashboard'), {
      recursive: true,
    })
    chmodSync(path.join(made, 'cli/main.js'), 0o755)
    for (const name of readdirSync(dist))
      if (!OTHERS.has(name) && name !== path.basename(made))
        rmSync(path.join(dist, name), { recursive: true })
    for (const name of readdirSync(made)) renameSync(path.join(made, name), path.join(dist, name))
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

if (isMain(import.meta.url)) await main()
