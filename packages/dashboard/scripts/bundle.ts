// Makes dist/index.html: the one file that the server hands out, with its style and script inside.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')

async function bundled(file: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path.join(here, 'src', file)],
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['es2023'],
    charset: 'utf8',
    logLevel: 'warning',
  })
  return outputFiles[0]?.text.trim() ?? ''
}

const style = await bundled('style.css')
const script = (await bundled('main.ts')).replaceAll('</script', '<\\/script')
const page = readFileSync(path.join(here, 'src/index.html'), 'utf8')
  .replace('<!-- style -->', () => `<style>${style}</style>`)
  .replace('<!-- script -->', () => `<script type="module">${script}</script>`)

mkdirSync(path.join(here, 'dist'), { recursive: true })
writeFileSync(path.join(here, 'dist/index.html'), page)
