// The package as it is published: packed, installed in an empty folder with nothing but what it depends on, and used there.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs' // prettier-ignore
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bare, start } from './processes.ts'

const engine = fileURLToPath(new URL('../../', import.meta.url))
const modules = path.resolve(engine, '../../node_modules')
const cwd = mkdtempSync(path.join(os.tmpdir(), 'leasehold-package-'))
afterAll(() => rmSync(cwd, { recursive: true, force: true }))

/** Runs a command to its end; what it said is told when it fails. */
const done = async (command: string, args: readonly string[], folder = cwd): Promise<string> => {
  const started = start(command, args, { cwd: folder })
  const code = await started.ended
  expect(code, `${command} ${args.join(' ')}:\n${started.out()}\n${started.err()}`).toBe(0)
  return started.out()
}

/** The packages that the published one depends on are taken from the workspace, so that no registry is asked. */
beforeAll(() => {
  const { dependencies } = JSON.parse(readFileSync(path.join(engine, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const npm = (...args: string[]): string =>
    execFileSync('npm', args, {
      cwd,
      env: bare(process.env),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  const packed = npm('pack', engine, '--ignore-scripts', '--silent', '--pack-destination', cwd)
  const linked = [...Object.keys(dependencies), '@types/node'].map((name) => [
    name,
    `file:${path.join(modules, name)}`,
  ])
  writeFileSync(
    path.join(cwd, 'package.json'),
    JSON.stringify({
      name: 'consumer',
      private: true,
      type: 'module',
      dependencies: { leasehold: `file:./${packed.trim()}`, ...Object.fromEntries(linked) },
    }),
  )
  npm('install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund')
})

test('OPS-03 the installed command makes a project, serves the page at / and runs its workflow', async () => {
  await done('npx', ['--offline', 'leasehold', 'init', 'mine'])
  const project = path.join(cwd, 'mine')
  const dev = start('npm', ['run', 'dev', '--', '--port', '0'], { cwd: project })
  const url = (await dev.line('dashboard')).split(/\s+/)[1] ?? ''
  const answer = await fetch(url)
  expect(answer.status).toBe(200)
  expect(await answer.text()).toContain('<title>Leasehold</title>')
  const greeted = await done(
    'npx',
    [
      '--offline',
      'leasehold',
      'start',
      'greet',
      '--input',
      '{"name":"Ann"}',
      '--wait',
      '--url',
      url,
    ],
    project,
  )
  expect(greeted).toBe('"Hello, Ann!"\n')
})

test('DX-02 each entry point can be imported, and a class is the same one behind all of them', async () => {
  const names = ['', '/client', '/executor', '/server', '/sqlite', '/testing']
  writeFileSync(
    path.join(cwd, 'all.mjs'),
    `const all = await Promise.all(${JSON.stringify(names)}.map((name) => import('leasehold' + name)))
const [main, client] = all
console.log(main.LeaseholdError === client.LeaseholdError, all.every((each) => Object.keys(each).length > 0))
`,
  )
  expect(await done(process.execPath, ['all.mjs'])).toBe('true true\n')
})

const CONSUMER = `import { embedded, workflow } from 'leasehold'
import type { Context, Settings } from 'leasehold'
import { connect } from 'leasehold/client'
import { remoteExecutor } from 'leasehold/executor'
import { defaults, startServer } from 'leasehold/server'
import { openOnSqlite } from 'leasehold/sqlite'
import { testEngine } from 'leasehold/testing'
import { z } from 'zod'

export const greet = workflow(
  { name: 'greet', input: z.object({ name: z.string() }), output: z.string() },
  async (ctx, { name }) => ctx.step('say', () => \`Hello, \${name}!\`),
)
const engine = await embedded({ file: 'greet.db', workflows: [greet] })
await engine.start(greet, { name: 'Ann' })
await connect({ url: 'http://127.0.0.1:7400' }).start<typeof greet>('greet', { name: 'Ann' })
// @ts-expect-error a wrong input does not compile
await engine.start(greet, { name: 1 })
export const settings: Settings = defaults
export const parts = [remoteExecutor, startServer, openOnSqlite, testEngine]
export const early = async (ctx: Context): Promise<number> => ctx.now()
`

test.each([
  ['nodenext', 'nodenext'],
  ['esnext', 'bundler'],
])(
  'DX-01 a strict project compiles against the package, its declarations included (module %s, resolved by %s)',
  async (module, moduleResolution) => {
    const project = path.join(cwd, module)
    mkdirSync(project)
    writeFileSync(path.join(project, 'consumer.ts'), CONSUMER)
    writeFileSync(
      path.join(project, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          module,
          moduleResolution,
          target: 'es2023',
          lib: ['es2023'],
          types: ['node'],
          strict: true,
          skipLibCheck: false,
          noEmit: true,
        },
      }),
    )
    await done(process.execPath, [path.join(modules, 'typescript/bin/tsc')], project)
  },
)

test('DX-04 what a program of the build shows of its source is named as it stands in the package', () => {
  const dist = path.join(engine, 'dist')
  const maps = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.js.map') && !/^(bench|planted)/.test(file),
  )
  const missing = maps.flatMap((file) => {
    const map = path.join(dist, file)
    const { sources } = JSON.parse(readFileSync(map, 'utf8')) as { sources: string[] }
    return sources
      .map((source) => path.resolve(path.dirname(map), source))
      .filter((source) => source.includes('packages') && !existsSync(source))
  })
  expect(maps.length).toBeGreaterThan(10)
  expect(missing).toEqual([])
})
