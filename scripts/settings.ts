// Writes docs/settings.md from the tables of what can be configured: cli/config/config.ts for processes, model/settings.ts for
// the numbers of the engine. What each decides is what stands above it in its interface.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'
import { items } from '../packages/engine/src/cli/config/config.ts'
import { envName, flagName } from '../packages/engine/src/cli/config/sources.ts'
import { SETTINGS } from '../packages/engine/src/cli/declaring.ts'
import { defaults } from '../packages/engine/src/model/settings.ts'
import { isMain, root } from './files.ts'
import { writeOrCheck } from './generated.ts'

export type Item = {
  readonly expected: string
  readonly fallback: unknown
  readonly otherwise?: string
  readonly secret?: true
}

/** What stands above each member of an interface, on one line. */
export function decides(source: string, name: string): Record<string, string> {
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, true)
  const found = file.statements.find(
    (each): each is ts.InterfaceDeclaration =>
      ts.isInterfaceDeclaration(each) && each.name.text === name,
  )
  if (!found) throw new Error(`there is no interface ${name}`)
  return Object.fromEntries(
    found.members.map((member) => {
      const at = member.name?.getText(file) ?? ''
      const said = ts
        .getJSDocCommentsAndTags(member)
        .map((each) => ts.getTextOfJSDocComment(each.comment) ?? '')
        .join(' ')
        .replaceAll(/\s+/g, ' ')
        .trim()
      return [at, said] as const
    }),
  )
}

const UNITS = { Ms: 'ms', Bytes: 'bytes', Chars: 'characters' } as const

/** By the end of the name; what has no unit is counted. */
const unitOf = (name: string): string =>
  Object.entries(UNITS).find(([ending]) => name.endsWith(ending))?.[1] ?? ''

const STEPS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** A default as it may be written in a flag, a variable or the file; those that are no number or text are empty. */
function written(name: string, value: unknown): string {
  if (typeof value === 'string') return code(value)
  if (typeof value !== 'number') return 'none'
  if (unitOf(name) === 'ms') {
    const [unit, ms] = STEPS.find(([, each]) => value >= each && value % each === 0) ?? ['ms', 1]
    return code(`${value / ms}${unit}`)
  }
  const mebi = value / 1024 ** 2
  return code(value) + (unitOf(name) === 'bytes' && mebi >= 1 ? ` (${mebi} MiB)` : '')
}

export function settingsPage(
  ofProcesses: Readonly<Record<string, Item>>,
  processes: Readonly<Record<string, string>>,
  ofEngine: object,
  engine: Readonly<Record<string, string>>,
  flags: readonly string[],
): string {
  const lines = [
    '<!-- Generated from packages/engine/src/cli/config/config.ts and packages/engine/src/model/settings.ts by `npm run docs`. Do not edit. -->',
    '',
    '# Settings',
    '',
    'A flag beats the environment, which beats `leasehold.config.json` (found by walking up, or named by `--config` or',
    '`LEASEHOLD_CONFIG`), which beats the default. `leasehold config` shows what is in force, and where each value comes from.',
    '',
    'A duration is a text such as `25s` or `1h 30m`, or milliseconds.',
    '',
    '## Of processes',
    '',
    'In the file they stand at the top. What is secret may also stand in a file of its own, which a variable with the ending',
    '`_FILE` names, as `LEASEHOLD_TOKEN_FILE`; it is never shown. A flag is taken by those commands whose help lists it.',
    'Beside these are the `sinks`: see [notices](guide/notices.md).',
    '',
    '| setting | decides | takes | default | variable | flag |',
    '| --- | --- | --- | --- | --- | --- |',
  ]
  for (const [name, item] of Object.entries(ofProcesses))
    lines.push(
      row(
        code(name),
        saidOf(processes, name),
        item.expected,
        item.otherwise ?? written(name, item.fallback),
        code(envName(name)) + (item.secret ? ' (secret)' : ''),
        flags.includes(name) ? code(`--${flagName(name)}`) : '',
      ),
    )
  lines.push(
    '',
    '## Of the engine',
    '',
    'Numbers by which the engine decides. In the file they stand under `settings`; code that opens an engine gives them as',
    '`settings`, durations in milliseconds. What has no unit is counted.',
    '',
    '| setting | decides | unit | default | variable |',
    '| --- | --- | --- | --- | --- |',
  )
  for (const [name, value] of Object.entries(ofEngine))
    lines.push(
      row(
        code(name),
        saidOf(engine, name),
        unitOf(name),
        written(name, value),
        code(envName(name)),
      ),
    )
  return lines.join('\n') + '\n'
}

function saidOf(table: Readonly<Record<string, string>>, name: string): string {
  const said = table[name]
  if (!said) throw new Error(`${name}: say above it, in its interface, what it decides`)
  return said
}

const code = (text: string | number): string => `\`${text}\``
const row = (...cells: string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`

if (isMain(import.meta.url)) {
  const read = (file: string): string =>
    readFileSync(path.join(root, 'packages/engine/src', file), 'utf8')
  writeOrCheck(
    'docs/settings.md',
    settingsPage(
      items,
      decides(read('cli/config/config.ts'), 'Config'),
      defaults,
      decides(read('model/settings.ts'), 'Settings'),
      SETTINGS,
    ),
  )
}
