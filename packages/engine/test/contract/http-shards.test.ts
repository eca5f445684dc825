// A stream over several databases, of which each changes by itself.
import { expect, test } from 'vitest'
import { ownerOn, serve } from '../support/shards.ts'

test('RUN-34 a stream over all has the changes of each, and one of a run is of its shard', async () => {
  const s = await serve()
  const following = await s.handler.fetch(new Request('http://localhost/v1/events'))
  const reader = (following.body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>
  let read = ''
  const until = async (text: string): Promise<void> => {
    while (!read.includes(text)) {
      let come: { readonly value?: string | undefined; readonly done: boolean } | null = null
      void reader.read().then((next) => {
        come = next
      })
      const found = (): typeof come => come
      while (found() === null) {
        await new Promise((resolve) => setImmediate(resolve))
        s.stores[0]?.later(100)
      }
      if (found()?.done !== false) throw new Error(`the stream ended without ${text}`)
      read += found()?.value ?? ''
    }
  }
  const pulling = until('~1')
  await s.begin(ownerOn(1))
  await pulling
  const here = await s.begin(ownerOn(0))
  await until(here)
  expect(read).toContain(here)
  await reader.cancel()
})
