// Time, randomness, timers and settings are ports. This rule finds what reads them past the ports:
// the linter cannot tell `new Date()` from `new Date(instant)`, so the whole rule stands here, once.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'
import { filesUnder, isMain, isTest, lineAt, report, root, type Finding } from './files.ts'

const source = 'packages/engine/src/'
const edges = ['kernel/', 'entry/', 'programs/', 'embedded/', 'cli/', 'orchestrator/main.ts'].map(
  (part) => source + part,
)

const globals = new Set(['setTimeout', 'setInterval', 'setImmediate'])
const properties = new Set([
  'Date.now',
  'Math.random',
  'crypto.randomUUID',
  'crypto.getRandomValues',
  'performance.now',
  'process.env',
  'process.hrtime',
])
const modules = new Set(['timers', 'timers/promises', 'crypto', 'perf_hooks', 'process'])
const allowedNames = new Set(['createHash', 'createHmac', 'timingSafeEqual', 'Hash', 'Hmac'])

export const isEdge = (file: string): boolean => edges.some((edge) => file.startsWith(edge))

export function findAmbient(file: string, text: string): Finding[] {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: Finding[] = []
  const say = (node: ts.Node, what: string): void => {
    const line = lineAt(text, node.getStart(tree))
    found.push({ file, line, text: `${what}: take it from a port of kernel/` })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node)) {
      const object = lastName(node.expression)
      const name = `${object}.${node.name.text}`
      if (properties.has(name)) say(node, name)
      if (object === 'globalThis' && globals.has(node.name.text)) say(node, node.name.text)
    } else if (ts.isNewExpression(node) && node.expression.getText(tree) === 'Date') {
      if (!node.arguments?.length) say(node, 'new Date()')
    } else if (ts.isCallExpression(node) && node.expression.getText(tree) === 'Date') {
      say(node, 'Date()')
    } else if (ts.isIdentifier(node) && globals.has(node.text) && isRead(node)) {
      say(node, node.text)
    } else if (ts.isImportDeclaration(node)) {
      for (const name of ambientImports(node)) say(node, name)
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return found
}

const lastName = (node: ts.Expression): string =>
  ts.isPropertyAccessExpression(node) ? node.name.text : ts.isIdentifier(node) ? node.text : ''

/** A name that is read, not one that names a property, a parameter or a member of its own. */
function isRead(node: ts.Identifier): boolean {
  const parent = node.parent
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node
  const names = 'name' in parent && parent.name === node
  return ts.isShorthandPropertyAssignment(parent) || (!names && !ts.isTypeNode(parent))
}

function ambientImports(node: ts.ImportDeclaration): string[] {
  const from = ts.isStringLiteral(node.moduleSpecifier) ? node.moduleSpecifier.text : ''
  const bindings = node.importClause?.namedBindings
  if (!modules.has(from.replace(/^node:/, '')) || node.importClause?.isTypeOnly) return []
  if (!bindings || !ts.isNamedImports(bindings)) return [from]
  return bindings.elements
    .filter((one) => !one.isTypeOnly)
    .map((one) => (one.propertyName ?? one.name).text)
    .filter((name) => !allowedNames.has(name))
    .map((name) => `${name} of ${from}`)
}

if (isMain(import.meta.url)) {
  const files = filesUnder(source, ['.ts']).filter((file) => !isTest(file) && !isEdge(file))
  const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
  report(
    'ambient',
    files.flatMap((file) => findAmbient(file, read(file))),
  )
}
