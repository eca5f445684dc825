// `leasehold init`: writes a small project that runs. It writes over nothing.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { messageOf } from '../../kernel/json.ts'
import type { Run } from '../call.ts'
import { CONFIG_FILE } from '../config/config-file.ts'
import { exit, UsageError } from '../exit.ts'
import { packageFolder } from '../package-folder.ts'

export const run: Run = async ({ args: [given = ''], out, sources }) => {
  const folder = path.resolve(sources.cwd, given === '' ? '.' : given)
  const files = projectFiles(
    path
      .basename(folder)
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, '-') || 'workflows',
  )
  const there = Object.keys(files).filter((name) => existsSync(path.join(folder, name)))
  if (there.length > 0)
    throw new UsageError(
      `${folder} has ${there.join(', ')} already, and nothing is written over; name another folder`,
    )
  try {
    mkdirSync(folder, { recursive: true })
    for (const [name, content] of Object.entries(files))
      writeFileSync(path.join(folder, name), content, { flag: 'wx' })
  } catch (error) {
    throw new UsageError(
      `${folder} cannot be written: ${messageOf(error)}; name a folder where you may write`,
    )
  }
  for (const name of Object.keys(files))
    out.line(path.relative(sources.cwd, path.join(folder, name)))
  const steps = [
    ...(folder === sources.cwd ? [] : [`cd ${path.relative(sources.cwd, folder)}`]),
    'npm install',
    'npm run dev',
  ]
  out.note(`next: ${steps.join(' && ')}`)
  return exit.ok
}

/** Where the project takes the package from: npm, or the checkout whose command was called. */
const source = (): string => {
  const here = path.resolve(packageFolder)
  if (!here.split(path.sep).includes('node_modules')) return `file:${here.replaceAll('\\', '/')}`
  const { version } = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8')) as {
    version: string
  }
  return `^${version}`
}

const projectFiles = (name: string): Readonly<Record<string, string>> => ({
  'package.json': `${JSON.stringify(
    {
      name,
      private: true,
      type: 'module',
      scripts: {
        dev: 'leasehold dev workflows.js',
        serve: 'leasehold serve',
        work: 'leasehold work workflows.js',
      },
      dependencies: { leasehold: source() },
    },
    null,
    2,
  )}\n`,
  [CONFIG_FILE]: `${JSON.stringify({ file: '.leasehold/leasehold.db' }, null, 2)}\n`,
  '.gitignore': 'node_modules/\n.leasehold/\n',
  'workflows.js': `// A workflow is a plain async function. What a step returned is recorded: after a crash the
// function runs again from the top, and every step that is recorded gives its result back at once.
import { workflow } from 'leasehold'

export const greet = workflow('greet', async (ctx, input) => {
  const name = await ctx.step('look up', () => input?.name ?? 'world')
  await ctx.sleep('think', '1s') // durable: no process waits for it
  return ctx.step('say', () => \`Hello, \${name}!\`)
})
`,
  'README.md': `# ${name}

\`\`\`
npm install
npm run dev                                             # server, executor and dashboard
npx leasehold start greet --input '{"name":"Ann"}' --wait
npx leasehold show latest
\`\`\`

In production the two are apart: \`npm run serve\` once, and \`npx leasehold work workflows.js\` as often
as you like. Stop an executor with SIGTERM: it hands back what it holds, and the others go on.
`,
})
