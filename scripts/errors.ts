// Writes docs/errors.md from the code table in packages/engine/src/kernel/codes.ts.
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { isMain, root } from './files.ts'
import { writeOrCheck } from './generated.ts'

export type Kind = 'refusal' | 'fault' | 'defect' | 'failure'
export type Codes = Record<string, { kind: Kind; status: number; what: string; todo: string }>

const kinds: Record<Kind, string> = {
  refusal: 'An expected no, as a value: the call changed nothing, and says what it found.',
  fault: 'The outside failed: the store, the network, a peer. Trying again may help.',
  defect: 'We are wrong. The process stops, and what it held is taken back.',
  failure: "The workflow's own code failed. It is stored with the run, as data.",
}

export function errorsPage(codes: Codes): string {
  const lines = [
    '<!-- Generated from packages/engine/src/kernel/codes.ts by `npm run docs`. Do not edit. -->',
    '',
    '# Error codes',
    '',
    'Every code that an answer, a thrown error or a stored failure can carry, by kind.',
  ]
  for (const [kind, meaning] of Object.entries(kinds)) {
    const rows = Object.entries(codes)
      .filter(([, entry]) => entry.kind === kind)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
    if (rows.length === 0) continue
    lines.push('', `## ${kind}`, '', meaning, '')
    lines.push('| code | HTTP | what happened | what to do |', '| --- | --- | --- | --- |')
    for (const [code, { status, what, todo }] of rows) {
      lines.push(`| \`${code}\` | ${status} | ${cell(what)} | ${cell(todo)} |`)
    }
  }
  return lines.join('\n') + '\n'
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

if (isMain(import.meta.url)) {
  const file = path.join(root, 'packages/engine/src/kernel/codes.ts')
  const { codes }: { codes: Codes } = await import(pathToFileURL(file).href)
  writeOrCheck('docs/errors.md', errorsPage(codes))
}
