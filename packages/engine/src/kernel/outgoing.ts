// Requests to the outside, as a port. Each has a connection of its own, whose address is checked as it connects, so that a
// name that is resolved twice gains nothing; no redirect is followed, and of an answer no more than its beginning is read.
import { lookup as systemLookup } from 'node:dns'
import type { LookupAddress } from 'node:dns'
import { request as plainRequest } from 'node:http'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as secureRequest } from 'node:https'
import { isIP } from 'node:net'
import { isPublic } from './addresses.ts'
import { Fault } from './errors.ts'

export interface OutgoingRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Ends it: nothing is open afterwards. */
  readonly signal: AbortSignal
  /** Addresses that are not public may be reached too. */
  readonly allowPrivate: boolean
  /** Bytes of the answer that are read; the rest is cut off. Default 64 KiB. */
  readonly answerMax?: number
}

export interface OutgoingAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
  /** There was more than was read. */
  readonly cut: boolean
}

/** Throws a Fault `peer_unreachable` where no answer came; any status is an answer. */
export type Outgoing = (request: OutgoingRequest) => Promise<OutgoingAnswer>

type Lookup = (
  host: string,
  options: { readonly all: true },
  found: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

const ANSWER_MAX = 64 * 1024

/** `lookup` is what resolves names: the system's, by default. */
export const systemOutgoing =
  (lookup: Lookup = systemLookup): Outgoing =>
  ({ method, url, headers, body, signal, allowPrivate, answerMax = ANSWER_MAX }) =>
    new Promise((resolve, reject) => {
      const at = new URL(url)
      const host = at.hostname.replace(/^\[|\]$/g, '')
      const fail = (why: string, cause?: unknown): void =>
        reject(new Fault('peer_unreachable', `${host}: ${why}`, { cause }))
      if (signal.aborted) return fail('the time for it is over')
      if (isIP(host) !== 0 && !allowPrivate && !isPublic(host)) return fail(refusal(host))
      const options: RequestOptions = {
        method,
        // one connection a request: each is checked
        agent: false,
        signal,
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
        },
        lookup: (name, asked, found) =>
          lookup(name, { all: true }, (error, addresses) => {
            if (error) return found(error, '', 0)
            const bad = allowPrivate ? undefined : addresses.find((each) => !isPublic(each.address))
            if (bad) return found(new Error(refusal(bad.address)), '', 0)
            const [first] = addresses
            if (!first) return found(new Error('the name has no address'), '', 0)
            if (asked.all === true) found(null, addresses)
            else found(null, first.address, first.family)
          }),
      }
      const send = at.protocol === 'https:' ? secureRequest : plainRequest
      const sent = send(at, options, (answer) => {
        read(answer, answerMax).then(
          ({ text, cut }) => {
            if (cut) sent.destroy()
            resolve({
              status: answer.statusCode ?? 0,
              headers: answer.headers,
              body: text,
              cut,
            })
          },
          (error: Error) => fail(error.message, error),
        )
      })
      sent.on('error', (error) =>
        fail(signal.aborted ? 'it did not answer in time' : error.message, error),
      )
      sent.end(body)
    })

const refusal = (address: string): string =>
  `${address} is not a public address; allow private ones for this sink if that is meant`

const read = (answer: IncomingMessage, most: number): Promise<{ text: string; cut: boolean }> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let size = 0
    const done = (cut: boolean): void =>
      resolve({ text: Buffer.concat(parts).subarray(0, most).toString('utf8'), cut })
    answer.on('data', (part: Buffer) => {
      parts.push(part)
      size += part.length
      if (size > most) done(true)
    })
    answer.on('end', () => done(false))
    answer.on('error', reject)
  })
