// The string and template literals of a TypeScript file, with the place where each begins.
import ts from 'typescript'

export type Text = { text: string; index: number }

export function textsOf(file: string, source: string): Text[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true)
  const texts: Text[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      texts.push({ text: node.text, index: node.getStart(tree) })
    } else if (ts.isTemplateExpression(node)) {
      const spans = node.templateSpans.map((span) => '${}' + span.literal.text)
      texts.push({ text: node.head.text + spans.join(''), index: node.getStart(tree) })
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return texts
}
