// The browser in which the dashboard is tested: one that this machine has, else Chromium from its package manager, where it
// may install; else a sentence that says what to install.
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import path from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of the browser, or null where there is none. */
    browser: string | null
  }
}

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']
const MAC = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
]

/** How each package manager installs Chromium, without a question. */
const MANAGERS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'apt-get': [['update'], ['install', '-y', '--no-install-recommends', 'chromium']],
  dnf: [['install', '-y', 'chromium']],
  apk: [['add', 'chromium']],
}

const runs = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const onPath = (name: string): string | undefined =>
  (process.env['PATH'] ?? '')
    .split(path.delimiter)
    .map((folder) => path.join(folder, name))
    .find(runs)

/** The first browser that is there; one that is named must be. */
export const findBrowser = (
  named: string | undefined,
  find: (name: string) => string | undefined = onPath,
  isThere: (file: string) => boolean = runs,
): string | undefined => {
  if (named === undefined || named === '')
    return NAMES.map(find).find((found) => found !== undefined) ?? MAC.find(isThere)
  if (isThere(named)) return named
  throw new Error(`LEASEHOLD_TEST_BROWSER names ${named}, which is no program`)
}

const install = (): void => {
  const manager = Object.keys(MANAGERS).find((name) => onPath(name) !== undefined)
  if (manager === undefined) return
  const asRoot = process.getuid?.() === 0 ? [] : ['sudo', '-n']
  process.stderr.write(`the dashboard’s tests need a browser: installing Chromium by ${manager}\n`)
  for (const args of MANAGERS[manager] ?? []) {
    const [command = '', ...rest] = [...asRoot, manager, ...args]
    if (spawnSync(command, rest, { stdio: ['ignore', 'ignore', 'inherit'] }).status !== 0) return
  }
}

export const NO_BROWSER =
  'the tests of the dashboard need a browser, and none could be installed here: install Chromium or Chrome, or name one in LEASEHOLD_TEST_BROWSER'

export function setup({ provide }: TestProject): void {
  const named = process.env['LEASEHOLD_TEST_BROWSER']
  if (findBrowser(named) === undefined) install()
  provide('browser', findBrowser(named) ?? null)
}
