import { expect, it } from 'vitest'
import { readBytes } from './request-body.ts'

const slow = () => {
  let to: ReadableStreamDefaultController<Uint8Array> | undefined
  let canceled = false
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => void (to = controller),
    cancel: () => void (canceled = true),
  })
  const request = new Request('http://here/hooks/x', {
    method: 'POST',
    body,
    duplex: 'half',
  } as RequestInit)
  return {
    request,
    send: (bytes: number) => to?.enqueue(new Uint8Array(bytes)),
    end: () => to?.close(),
    fail: () => to?.error(new Error('the sender is gone')),
    isCanceled: () => canceled,
  }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

it('RAIL-15 bodies of senders whom nobody knows yet share what may be held of them, and give it back however they end', async () => {
  const share = { most: 100, held: 0 }
  const [a, b, c, d] = [slow(), slow(), slow(), slow()]
  const first = readBytes(a.request, 60, share)
  const second = readBytes(b.request, 60, share)
  a.send(40)
  b.send(50)
  await turn()
  expect(share.held).toBe(90)
  const third = readBytes(c.request, 60, share)
  c.send(20)
  expect(await third).toMatchObject({ ok: false, code: 'server_busy', detail: { limit: 100 } })
  expect(c.isCanceled()).toBe(true)
  expect(share.held).toBe(90)
  b.fail()
  expect(await second).toMatchObject({ ok: false, code: 'invalid_request' })
  expect(share.held).toBe(40)
  const fourth = readBytes(d.request, 60, share)
  d.send(30)
  d.send(31)
  expect(await fourth).toMatchObject({ ok: false, code: 'payload_too_large' })
  a.end()
  expect(await first).toMatchObject({ ok: true, bytes: { byteLength: 40 } })
  expect(share.held).toBe(0)
})
