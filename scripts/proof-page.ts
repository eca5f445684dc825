// `docs/proof.md`: what the simulator said last, each section by the command that said it.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './files.ts'

const page = path.join(root, 'docs/proof.md')

const head = `# Proof

What the simulator said last, as it said it. Each section is written by its command with \`--record\`; whoever runs the
command on the same sources, which stand beside each bug, gets the same figures, save for the time. The promises are PROOF-01 to PROOF-05: one seed
gives one history; a fault counts when it hits an operation in flight or something held; delays and duplicates count for
half of them at most; what is planted must be found.

- \`npm run sim -- --faults N --seed S\` plays worlds until N faults have counted, and prints the line that plays a world again in
  which something did not hold.
- \`npm run sim -- --crash-points N --seed S\` plays small scenarios whose every call has a number: at each number, whoever makes the
  call dies before it, dies after it, or never hears of its answer, and so do N pairs of calls for each scenario (PROOF-04).
- \`npm run sim -- --planted NAME\` builds one bug into the sources and looks for it. Those named \`spawn-…\` and \`pod-…\` are looked for
  in worlds of their own: executors that are started for a queue, and a Kubernetes cluster that answers late, loses answers, evicts
  pods and loses machines while launchers die.
`

export const sections = ['A batch of worlds', 'Crash points', 'Planted bugs'] as const
export type Section = (typeof sections)[number]

/** The page with this section as these lines. */
export const withSection = (text: string, section: Section, lines: readonly string[]): string => {
  const kept = new Map(
    text
      .split(/^## /m)
      .slice(1)
      .map((part) => [part.split('\n', 1)[0] ?? '', part.slice(part.indexOf('\n')).trim()]),
  )
  kept.set(section, ['```text', ...lines, '```'].join('\n'))
  const parts = sections.flatMap((title) => {
    const body = kept.get(title)
    return body === undefined ? [] : [`## ${title}\n\n${body}\n`]
  })
  return [head, ...parts].join('\n')
}

/** The commit that is checked out, `-dirty` where files differ from it. */
export const sources = (): string => {
  const { stdout, status } = spawnSync('git', ['describe', '--always', '--dirty'], {
    cwd: root,
    encoding: 'utf8',
  })
  return status === 0 ? stdout.trim() : 'of no commit'
}

/** Rows of bugs that were hunted now take the places of their last ones; `order` is that of all bugs, and says which there are. */
export const withRows = (
  before: readonly string[],
  now: ReadonlyMap<string, string>,
  order: readonly string[],
): string[] => {
  const rows = new Map(before.map((line) => [line.split(' ', 1)[0] ?? '', line]))
  return order.flatMap((name) => now.get(name) ?? rows.get(name) ?? [])
}

/** The rows of the section of planted bugs, after those that were hunted now. */
export const recordRows = (
  command: string,
  head: string,
  now: ReadonlyMap<string, string>,
  order: readonly string[],
): void => {
  const old = existsSync(page) ? readFileSync(page, 'utf8') : ''
  const before = (old.split('## Planted bugs')[1] ?? '').split('\n')
  const rows = withRows(before, now, order)
  writeFileSync(page, withSection(old, 'Planted bugs', [`$ ${command}`, '', head, ...rows]))
}

export const record = (section: Section, command: string, lines: readonly string[]): void => {
  const old = existsSync(page) ? readFileSync(page, 'utf8') : ''
  const said = [
    `$ ${command}`,
    `sources ${sources()}, Node ${process.versions.node}, SQLite in memory`,
    '',
    ...lines,
  ]
  writeFileSync(page, withSection(old, section, said))
}
