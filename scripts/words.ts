// One word per thing: fails when a word that GLOSSARY.md says not to write stands in our code or docs.
// It reads the "Checked words" table (do not write | write) and the "Let through" list of phrases.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { filesUnder, isMain, lineAt, report, root, type Finding } from './files.ts'

export type Words = { banned: Map<string, string>; letThrough: string[] }

export function readGlossary(markdown: string): Words {
  const banned = new Map<string, string>()
  for (const line of section(markdown, 'Checked words').split('\n')) {
    const [, word, instead] = /^\|([^|]+)\|([^|]+)\|/.exec(line) ?? []
    if (!word || !instead || /^[\s:-]+$/.test(word) || word.trim() === 'do not write') continue
    banned.set(word.trim().toLowerCase(), instead.trim())
  }
  const letThrough = [...section(markdown, 'Let through').matchAll(/^- `([^`]+)`/gm)]
  return { banned, letThrough: letThrough.map((match) => match[1] ?? '') }
}

function section(markdown: string, title: string): string {
  const [, after = ''] = markdown.split(`## ${title}\n`)
  return after.split(/^## /m)[0] ?? ''
}

/** Whole words only; the parts of camelCase and snake_case names are words too. */
export function findWords(file: string, text: string, { banned, letThrough }: Words): Finding[] {
  let read = text
  for (const phrase of letThrough) read = read.replaceAll(phrase, ' '.repeat(phrase.length))
  const found: Finding[] = []
  for (const match of read.matchAll(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})/gu)) {
    const word = match[0].toLowerCase()
    const instead = stems(word)
      .map((stem) => banned.get(stem))
      .find(Boolean)
    if (!instead) continue
    found.push({ file, line: lineAt(text, match.index), text: `"${match[0]}": write "${instead}"` })
  }
  return found
}

const stems = (word: string): string[] => [
  word,
  ...['s', 'es', 'd', 'ed', 'ing'].flatMap((end) =>
    word.endsWith(end) ? [word.slice(0, -end.length), `${word.slice(0, -end.length)}e`] : [],
  ),
]

if (isMain(import.meta.url)) {
  const words = readGlossary(readFileSync(path.join(root, 'GLOSSARY.md'), 'utf8'))
  const pages = ['README.md', 'ARCHITECTURE.md', 'STYLE.md', 'AGENTS.md', 'CHANGELOG.md']
  const files = [
    ...filesUnder('packages', ['.ts', '.css', '.html', '.sql', '.md']),
    ...filesUnder('docs', ['.md']),
    ...filesUnder('examples', ['.ts', '.md']),
    ...pages.filter((page) => existsSync(path.join(root, page))),
  ]
  const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
  report(
    'words',
    files.flatMap((file) => findWords(file, read(file), words)),
  )
}
