// As much of the Kubernetes API as jobs need, over plain HTTP: making, reading, watching and deleting them, and the logs of their
// pods. A request that got no answer may have been carried out: whoever repeats it uses a name by which the first can be told.
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { messageOf } from '../../kernel/json.ts'
import type { Timers } from '../../kernel/timers.ts'

/** Why the API did not do what it was asked. Only after `unreachable` and `failed` it is unknown whether it was done. */
export type KubernetesErrorKind =
  | 'unreachable'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'gone'
  | 'invalid'
  | 'busy'
  | 'failed'

export class KubernetesError extends Error {
  readonly kind: KubernetesErrorKind
  constructor(kind: KubernetesErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'KubernetesError'
    this.kind = kind
  }
}

/** An object of the API, of which nothing but what is common to all is taken for granted. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: unknown
  readonly status?: unknown
}

export type Resource = 'jobs' | 'pods' | 'secrets'

export interface Cluster {
  /** Of the API, as `https://10.0.0.1:443`. */
  readonly server: string
  readonly namespace: string
  /** Asked before each request: a mounted token is replaced while the process runs. Null for none. */
  readonly token: () => string | null
  /** Certificates, PEM, that the server's is checked by. Default: the system's. */
  readonly ca?: string
  /** How long a request may take, in milliseconds. Default 30 s. A watch is not limited by it once it is answered. */
  readonly requestMs?: number
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: KubernetesObject
}

/** What is made: the API fills in the rest. */
export type Manifest = Readonly<Record<string, unknown>> & {
  readonly apiVersion: string
  readonly kind: string
}

export interface KubernetesApi {
  /** Rejects with `conflict` where the name is taken, as it is when this is a repeat. */
  create(resource: Resource, manifest: Manifest): Promise<KubernetesObject>
  get(resource: Resource, name: string): Promise<KubernetesObject>
  list(
    resource: Resource,
    selector: string,
  ): Promise<{ readonly version: string; readonly items: readonly KubernetesObject[] }>
  /**
   * Hears changes after `version`. Resolves with the version to go on from when the stream ends, by whatever way; rejects with
   * `gone` where that version is too old, after which only a new list helps.
   */
  watch(
    resource: Resource,
    from: { readonly selector: string; readonly version: string; readonly signal: AbortSignal },
    hear: (event: WatchEvent) => void,
  ): Promise<string>
  /** The end of what a pod's first container has printed, at most `bytes`. */
  logs(pod: string, bytes: number): Promise<string>
  /** Asks for its deletion, and of what it owns before it, where it still is exactly `uid`. It is gone when `get` says so. */
  delete(
    resource: Resource,
    name: string,
    how: { readonly uid: string; readonly graceSeconds?: number },
  ): Promise<void>
}

const MOUNTED = '/var/run/secrets/kubernetes.io/serviceaccount'
const REQUEST_MS = 30_000
const WHY_MAX = 1_000
const ANSWER_MAX = 64 * 1024 * 1024
const EVENT_MAX = 4 * 1024 * 1024
/** The server ends a watch by itself, so that one that is dead without a sign does not stay. */
const WATCH_SECONDS = 240

/**
 * The cluster in which this process is a pod, by its service account.
 * Throws a `KubernetesError` of kind `unreachable` where it is none.
 */
export const inCluster = (
  env: Readonly<Record<string, string | undefined>>,
  read: (file: string) => string = (file) => readFileSync(file, 'utf8'),
): Cluster => {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = env
  if (host === undefined || host === '')
    throw new KubernetesError(
      'unreachable',
      'KUBERNETES_SERVICE_HOST is not set; expected to be in a pod with a service account. Elsewhere give the server, token and namespace',
    )
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: read(`${MOUNTED}/namespace`).trim(),
    token: () => read(`${MOUNTED}/token`).trim(),
    ca: read(`${MOUNTED}/ca.crt`),
  }
}

const kindOf = (status: number): KubernetesErrorKind => {
  switch (status) {
    case 401:
      return 'unauthorized'
    case 403:
      return 'forbidden'
    case 404:
      return 'not_found'
    case 409:
      return 'conflict'
    case 410:
      return 'gone'
    case 429:
      return 'busy'
    default:
      return status >= 400 && status < 500 ? 'invalid' : 'failed'
  }
}

const pathOf = (resource: Resource, namespace: string, name?: string): string =>
  `${resource === 'jobs' ? '/apis/batch/v1' : '/api/v1'}/namespaces/${encodeURIComponent(namespace)}/${resource}${
    name === undefined ? '' : `/${encodeURIComponent(name)}`
  }`

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What is read of a secret is shown to nobody, also where it is not what was expected. */
const shownOf = (resource: Resource, text: string | undefined): string =>
  resource === 'secrets' ? 'something else' : (text?.slice(0, 200) ?? 'nothing')

const asObject = (resource: Resource, value: unknown): KubernetesObject => {
  const metadata = isRecord(value) ? value['metadata'] : null
  if (
    isRecord(metadata) &&
    typeof metadata['name'] === 'string' &&
    typeof metadata['uid'] === 'string'
  )
    return value as KubernetesObject
  throw new KubernetesError(
    'failed',
    `the API answered with ${shownOf(resource, JSON.stringify(value))}; expected an object with metadata`,
  )
}

const parsed = (resource: Resource, text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new KubernetesError(
      'failed',
      `the API answered with ${shownOf(resource, JSON.stringify(text))}; expected JSON`,
    )
  }
}

/** What stands in a secret that is to be made, as it is written and as it is kept. */
const secretsOf = ({ stringData }: Manifest): readonly string[] =>
  Object.values(isRecord(stringData) ? stringData : {}).flatMap((each) =>
    typeof each === 'string' && each !== '' ? [each, Buffer.from(each).toString('base64')] : [],
  )

export const kubernetesApi = (cluster: Cluster, timers: Timers): KubernetesApi => {
  const { namespace, requestMs = REQUEST_MS } = cluster
  const send = cluster.server.startsWith('https:') ? overHttps : overHttp

  /** Resolves with the answer's head. */
  const open = (
    method: string,
    path: string,
    more: { readonly body?: unknown; readonly signal?: AbortSignal } = {},
  ): Promise<{ readonly response: IncomingMessage; readonly inTime: () => void }> =>
    new Promise((resolve, reject) => {
      const token = cluster.token()
      const body = more.body === undefined ? null : JSON.stringify(more.body)
      const unreachable = (why: string, cause?: unknown): KubernetesError =>
        new KubernetesError('unreachable', `${method} ${path}: ${why}`, { cause })
      const request = send(`${cluster.server}${path}`, {
        method,
        agent: false,
        ...(cluster.ca === undefined ? {} : { ca: cluster.ca }),
        ...(more.signal === undefined ? {} : { signal: more.signal }),
        headers: {
          accept: 'application/json, */*',
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === null
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        },
      })
      const inTime = timers.after(requestMs, () =>
        request.destroy(new Error(`it was not answered within ${requestMs} ms`)),
      )
      request.once('error', (error) => {
        inTime()
        reject(unreachable(messageOf(error), error))
      })
      request.once('response', (response) => resolve({ response, inTime }))
      request.end(body ?? undefined)
    })

  const textOf = async (what: string, response: IncomingMessage): Promise<string> => {
    let text = ''
    try {
      response.setEncoding('utf8')
      for await (const part of response as AsyncIterable<string>) {
        text += part
        if (text.length > ANSWER_MAX)
          throw new Error(`its answer is above ${ANSWER_MAX} characters`)
      }
    } catch (error) {
      throw new KubernetesError('unreachable', `${what}: ${messageOf(error)}`, { cause: error })
    }
    return text
  }

  const mustBeOk = async (
    what: string,
    response: IncomingMessage,
    hidden: readonly string[] = [],
  ): Promise<void> => {
    const { statusCode: status = 0 } = response
    if (status >= 200 && status < 300) return
    const text = await textOf(what, response)
    let why = text
    try {
      const said: unknown = JSON.parse(text)
      if (isRecord(said) && typeof said['message'] === 'string') why = said['message']
    } catch {
      // what stands between may answer with anything
    }
    // what refuses a secret may say what is in it
    for (const each of hidden) why = why.replaceAll(each, '…')
    throw new KubernetesError(kindOf(status), `${what}: ${status}: ${why.slice(0, WHY_MAX)}`)
  }

  const ask = async (
    method: string,
    path: string,
    body?: unknown,
    hidden: readonly string[] = [],
  ): Promise<string> => {
    const what = `${method} ${path}`
    const { response, inTime } = await open(method, path, body === undefined ? {} : { body })
    try {
      await mustBeOk(what, response, hidden)
      return await textOf(what, response)
    } finally {
      inTime()
    }
  }

  return {
    async create(resource, manifest) {
      const path = pathOf(resource, namespace)
      const answer = await ask('POST', path, manifest, secretsOf(manifest))
      return asObject(resource, parsed(resource, answer))
    },

    async get(resource, name) {
      const answer = await ask('GET', pathOf(resource, namespace, name))
      return asObject(resource, parsed(resource, answer))
    },

    async list(resource, selector) {
      const query = new URLSearchParams({ labelSelector: selector })
      const path = `${pathOf(resource, namespace)}?${query.toString()}`
      const said = parsed(resource, await ask('GET', path))
      const { items, metadata } = isRecord(said) ? said : {}
      if (!Array.isArray(items) || !isRecord(metadata))
        throw new KubernetesError('failed', `the list of ${resource} has no items or no metadata`)
      return {
        version: String(metadata['resourceVersion']),
        items: items.map((each) => asObject(resource, each)),
      }
    },

    async watch(resource, { selector, version, signal }, hear) {
      const query = new URLSearchParams({
        watch: '1',
        allowWatchBookmarks: 'true',
        labelSelector: selector,
        resourceVersion: version,
        timeoutSeconds: String(WATCH_SECONDS),
      })
      const path = `${pathOf(resource, namespace)}?${query.toString()}`
      const { response, inTime } = await open('GET', path, { signal })
      let last = version
      const take = (line: string): void => {
        const said = parsed(resource, line)
        const { type, object } = isRecord(said) ? said : {}
        if (type === 'ERROR') {
          const { code, message } = isRecord(object) ? object : {}
          throw new KubernetesError(
            kindOf(Number(code)),
            `watch of ${resource}: ${String(message)}`,
          )
        }
        if (type === 'BOOKMARK') {
          const metadata = isRecord(object) ? object['metadata'] : null
          if (isRecord(metadata)) last = String(metadata['resourceVersion'])
          return
        }
        if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') return
        const known = asObject(resource, object)
        last = known.metadata.resourceVersion
        hear({ type, object: known })
      }
      try {
        await mustBeOk(`GET ${path}`, response)
        inTime()
        response.setEncoding('utf8')
        let rest = ''
        for await (const part of response as AsyncIterable<string>) {
          const lines = `${rest}${part}`.split('\n')
          // the last is cut, or empty
          rest = lines.pop() ?? ''
          for (const line of lines) if (line !== '') take(line)
          if (rest.length > EVENT_MAX)
            throw new KubernetesError('failed', `an event of ${resource} is above ${EVENT_MAX}`)
        }
      } catch (error) {
        // a stream that was cut is gone on from where it was
        if (error instanceof KubernetesError) throw error
      } finally {
        inTime()
        response.destroy()
      }
      return last
    },

    logs(pod, bytes) {
      const query = new URLSearchParams({ limitBytes: String(bytes), tailLines: '1000' })
      return ask('GET', `${pathOf('pods', namespace, pod)}/log?${query.toString()}`)
    },

    async delete(resource, name, { uid, graceSeconds }) {
      await ask('DELETE', pathOf(resource, namespace, name), {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: 'Foreground',
        preconditions: { uid },
        ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
      })
    },
  }
}
