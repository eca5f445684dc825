import { expect, test } from 'vitest'
import { docsPage } from './docs-page.ts'
import { openApi } from './openapi.ts'
import { routes } from './routes.ts'

const document = openApi()
const text = JSON.stringify(document)

test('OPS-01 the OpenAPI document has every route, and every reference in it leads somewhere', () => {
  const paths = document['paths'] as Record<string, Record<string, { operationId: string }>>
  const found = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
  expect(found.sort()).toEqual(Object.keys(routes).sort())
  const { schemas } = document['components'] as { schemas: Record<string, unknown> }
  const references = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)]
  expect(references.length).toBeGreaterThan(20)
  for (const [, name] of references) expect(Object.keys(schemas)).toContain(name)
  expect(text).not.toContain('#/$defs/')
  expect(text).not.toContain('"$schema"')
})

test('OPS-01 requests are described as they are checked', () => {
  const paths = document['paths'] as Record<string, Record<string, Record<string, unknown>>>
  const start = paths['/v1/runs']?.['post']
  expect(start?.['requestBody']).toMatchObject({
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Start' } } },
  })
  const { schemas } = document['components'] as {
    schemas: Record<string, { required: string[]; additionalProperties: unknown }>
  }
  expect(schemas['Start']).toMatchObject({ required: ['workflow'], additionalProperties: false })
  const list = paths['/v1/runs']?.['get']?.['parameters'] as { name: string; required: boolean }[]
  expect(list.map(({ name }) => name)).toContain('cursor')
  expect(list.every(({ required }) => !required)).toBe(true)
  expect(Object.keys(start?.['responses'] as object)).toEqual(
    expect.arrayContaining(['200', '400', '404', '409', '413', '422', '429', '503']),
  )
})

test('OPS-01 the page shows every route and fetches nothing', () => {
  const page = docsPage(document)
  for (const name of Object.keys(routes)) expect(page).toContain(`id="${name}"`)
  expect(page).not.toMatch(/<script|src=|https?:\/\//)
})
