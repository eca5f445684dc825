// Writes docs/states.md from the move tables of packages/engine/src/model: the tables are the truth.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { filesUnder, isMain, isTest, root } from './files.ts'
import { writeOrCheck } from './generated.ts'

type Move = { from: readonly string[]; to: readonly string[] | 'same'; why?: string }
export type Machine = {
  name: string
  states: readonly string[]
  terminal: readonly string[]
  moves: Record<string, Move>
}

export function isMachine(value: unknown): value is Machine {
  return typeof value === 'object' && value !== null && 'moves' in value && 'states' in value
}

export function statesPage(machines: Machine[]): string {
  const head = [
    '<!-- Generated from packages/engine/src/model by `npm run docs`. Do not edit. -->',
    '',
    '# States',
    '',
    'Every way in which a state can change. Whatever is not in these tables is refused.',
  ]
  const parts = machines.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(machinePart)
  return [...head, ...parts].join('\n') + '\n'
}

function machinePart({ name, states, terminal, moves }: Machine): string {
  const arrows = new Map<string, string[]>()
  for (const [verb, { from, to }] of Object.entries(moves)) {
    for (const a of from) {
      for (const b of to === 'same' ? [a] : to)
        arrows.set(`${a} --> ${b}`, [...(arrows.get(`${a} --> ${b}`) ?? []), verb])
    }
  }
  const diagram = [
    'stateDiagram-v2',
    ...states.filter((state) => !terminal.includes(state)).map((state) => `  state ${state}`),
    ...[...arrows].map(([arrow, verbs]) => `  ${arrow}: ${verbs.join(', ')}`),
    ...terminal.map((state) => `  ${state} --> [*]`),
  ]
  const rows = Object.entries(moves).map(
    ([verb, { from, to, why }]) =>
      `| \`${verb}\` | ${names(from)} | ${to === 'same' ? 'stays' : names(to)} | ${(why ?? '').replaceAll('|', '\\|')} |`,
  )
  return [
    '',
    `## ${name}`,
    '',
    `States: ${names(states)}. Terminal: ${names(terminal)}.`,
    '',
    '```mermaid',
    ...diagram,
    '```',
    '',
    '| move | from | to | why |',
    '| --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}

const names = (states: readonly string[]): string =>
  states.map((state) => `\`${state}\``).join(', ') || 'none'

if (isMain(import.meta.url)) {
  const files = filesUnder('packages/engine/src/model', ['.ts']).filter((file) => !isTest(file))
  const modules: object[] = await Promise.all(
    files.map((file) => import(pathToFileURL(path.join(root, file)).href)),
  )
  const machines = modules.flatMap((module) => Object.values(module).filter(isMachine))
  writeOrCheck('docs/states.md', statesPage([...new Set(machines)]))
}
