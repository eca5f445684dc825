// A generated file is written, or with --check compared, so that what is on disk is never stale.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './files.ts'

export function isFresh(onDisk: string | undefined, text: string): boolean {
  return onDisk?.replaceAll('\r\n', '\n') === text
}

export function writeOrCheck(file: string, text: string, args = process.argv.slice(2)): void {
  const full = path.join(root, file)
  if (isFresh(existsSync(full) ? readFileSync(full, 'utf8') : undefined, text)) {
    console.log(`${file}: fresh`)
    return
  }
  if (args.includes('--check')) {
    console.error(`${file} is stale: run \`npm run docs\` and commit what it writes`)
    process.exitCode = 1
    return
  }
  mkdirSync(path.dirname(full), { recursive: true })
  writeFileSync(full, text)
  console.log(`${file}: written`)
}
