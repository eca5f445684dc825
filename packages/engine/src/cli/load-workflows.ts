// The workflows that a module exports, by any name and in lists. A TypeScript module is loaded by Node itself where it can,
// else by the tsx of the project that the module belongs to.
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AnyWorkflow } from '../executor/authoring/context.ts'
import { messageOf } from '../kernel/json.ts'
import { UsageError } from './exit.ts'
import { packageFolder } from './package-folder.ts'

export const loadWorkflows = async (module: string, cwd: string): Promise<AnyWorkflow[]> => {
  const file = path.resolve(cwd, module)
  if (/\.[cm]?tsx?$/.test(file)) await prepareTypeScript(file)
  let exported: Record<string, unknown>
  try {
    exported = await whileAlive(import(pathToFileURL(file).href), file)
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ERR_MODULE_NOT_FOUND' && message.includes(`'${file}'`))
      throw new UsageError(`there is no module ${file}`)
    throw new UsageError(`the module ${file} cannot be loaded: ${whereOf(error, file)}`)
  }
  // one workflow may be exported under several names
  const found = [...new Set(Object.values(exported).flat().filter(isWorkflow))]
  if (found.length === 0)
    throw new UsageError(`${file} exports no workflows; export what \`workflow(name, …)\` answers`)
  return found
}

/** Node ends without a word when a module awaits at its top level what nothing is left to settle. */
const whileAlive = async (
  loading: Promise<Record<string, unknown>>,
  file: string,
): Promise<Record<string, unknown>> => {
  let stuck: () => void = () => undefined
  const never = new Promise<never>((_resolve, reject) => {
    stuck = () =>
      reject(
        new UsageError(
          `the module ${file} was never loaded: it awaits something at its top level that nothing can settle any more; ` +
            'look for an `await` outside of functions, in it or in what it imports',
        ),
      )
  })
  process.once('beforeExit', stuck)
  try {
    return await Promise.race([loading, never])
  } finally {
    process.off('beforeExit', stuck)
  }
}

/** The error and the frames of its author: those of Node, of packages and of ours say nothing about the module. */
const whereOf = (error: unknown, file: string): string => {
  const { stack } = error as Error
  if (stack === undefined) return messageOf(error)
  const lines = stack.split('\n').filter((line) => !FRAME.test(line) || !isForeign(line))
  // Node keeps to itself where a module that it cannot parse goes wrong, save when it checks one alone
  const unplaced = error instanceof SyntaxError && lines.length === 1
  return `${lines.join('\n')}${unplaced ? `; \`node --check ${file}\` shows the place` : ''}`
}
const FRAME = /^\s+at /
const isForeign = (line: string): boolean =>
  line.includes('node:') || line.includes('node_modules') || line.includes(packageFolder)

/** By shape, since the module may have its own copy of the package. */
const isWorkflow = (value: unknown): value is AnyWorkflow =>
  typeof value === 'object' &&
  value !== null &&
  'definition' in value &&
  'handler' in value &&
  typeof value.handler === 'function'

const prepareTypeScript = async (file: string): Promise<void> => {
  if ((process.features as { typescript?: unknown }).typescript) return
  // a process that was started with a loader of its own, as by `node --import tsx`, has what it needs
  if (process.execArgv.some((arg) => arg.includes('tsx'))) return
  let loader: string
  try {
    // found as CommonJS finds it, from where the module stands; its twin beside it is the one to import
    loader = createRequire(file)
      .resolve('tsx/esm/api')
      .replace(/\.cjs$/, '.mjs')
  } catch {
    throw new UsageError(
      `${file} is TypeScript, which this Node (${process.version}) cannot run by itself: ` +
        'install tsx in its project, or use Node 22.18 or newer',
    )
  }
  const { register } = (await import(pathToFileURL(loader).href)) as { register: () => unknown }
  register()
}
