// The door for a fresh clone: plain JavaScript, since nothing is installed yet. It installs what the
// lock file names when that is not what is there, then hands over to a script of this folder.
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')

/**
 * @typedef {{ packages?: Record<string, { version?: string, integrity?: string, link?: boolean, optional?: boolean }> }} Lock
 * @param {Lock | undefined} wanted the lock file of the repository
 * @param {Lock | undefined} present the one that npm keeps inside node_modules
 */
export function isInstalled(wanted, present) {
  if (!wanted?.packages || !present?.packages) return false
  const found = present.packages
  return Object.entries(wanted.packages).every(([place, entry]) => {
    if (!place.startsWith('node_modules/') && !place.includes('/node_modules/')) return true
    if (entry.optional) return true
    const here = found[place]
    return here?.version === entry.version && here?.integrity === entry.integrity
  })
}

/** @param {string} file @returns {Lock | undefined} */
function readLock(file) {
  try {
    return JSON.parse(readFileSync(path.join(root, file), 'utf8'))
  } catch {
    return undefined
  }
}

/** @param {string} command @param {string[]} args */
function run(command, args) {
  const done = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  if (done.error) throw done.error
  if (done.status !== 0) process.exit(done.status ?? 1)
}

/**
 * Starts a script and ends as it ends. Ctrl-C goes to both, and is the script's to answer: who waits for this process then
 * waits until the script has stopped what it started.
 * @param {string[]} args
 */
export function handOver(args) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
  process.on('SIGINT', () => undefined)
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP']))
    process.on(signal, () => child.kill(signal))
  child.on('exit', (code) => process.exit(code ?? 1))
}

const started = process.argv[1]
if (started && realpathSync(started) === fileURLToPath(import.meta.url)) {
  const [task, ...rest] = process.argv.slice(2)
  if (!isInstalled(readLock('package-lock.json'), readLock('node_modules/.package-lock.json'))) {
    console.log(
      'installing what package-lock.json names (npm ci): a minute or so, and some more where better-sqlite3 has to be compiled',
    )
    run('npm', ['ci', '--no-audit', '--no-fund'])
  }
  if (task === 'start') run(process.execPath, ['--import', 'tsx', 'scripts/built.ts'])
  if (task) handOver(['--import', 'tsx', path.join('scripts', `${task}.ts`), ...rest])
}
