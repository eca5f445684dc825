// The Kubernetes API as far as it is used here, over HTTP: it keeps objects and versions, refuses what the real one refuses, streams
// watches, and deletes in the foreground. A test is its scheduler, its kubelet and its garbage collector.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

interface Stored {
  readonly apiVersion: string
  readonly kind: string
  metadata: {
    name: string
    uid: string
    resourceVersion: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
    deletionTimestamp?: string
    finalizers?: string[]
    ownerReferences?: { uid: string }[]
  }
  spec?: Record<string, unknown>
  status?: Record<string, unknown>
}

interface Watcher {
  readonly resource: string
  readonly selector: string
  readonly response: ServerResponse
}

export interface FakeCluster {
  readonly url: string
  readonly requests: { method: string; path: string; body: unknown }[]
  /** What the next requests get instead: a status, or a connection that is cut before or after it was done. */
  readonly faults: (number | 'cut' | 'cut_after')[]
  readonly objects: ReadonlyMap<string, Stored>
  /** Makes or changes one, as the cluster's own parts do. */
  put(resource: string, object: Record<string, unknown>): void
  remove(resource: string, name: string): void
  /** Ends all watches; `gone` also forgets the past, so that old versions are answered with 410. */
  cutWatches(how?: 'gone'): void
  watchers(): number
  stop(): Promise<void>
}

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const LABEL = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/
const PLACE =
  /^\/(apis\/batch\/v1|api\/v1)\/namespaces\/([^/]+)\/(jobs|pods|secrets)(?:\/([^/]+))?(\/log)?$/

export const fakeCluster = async (token = 'canary-of-the-cluster'): Promise<FakeCluster> => {
  const objects = new Map<string, Stored>()
  const watchers = new Set<Watcher>()
  const requests: FakeCluster['requests'] = []
  const faults: FakeCluster['faults'] = []
  let version = 100
  let oldest = 0
  let uids = 0
  const history: { version: number; resource: string; type: string; object: Stored }[] = []

  const matches = (object: Stored, selector: string): boolean =>
    selector
      .split(',')
      .filter((term) => term !== '')
      .every((term) => {
        const [key = '', value = ''] = term.split('=')
        return object.metadata.labels?.[key] === value
      })
  const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`
  const tell = (resource: string, type: string, object: Stored): void => {
    object.metadata.resourceVersion = String(++version)
    const copy = structuredClone(object)
    history.push({ version, resource, type, object: copy })
    for (const watcher of watchers)
      if (watcher.resource === resource && matches(copy, watcher.selector))
        watcher.response.write(line(type, copy))
  }
  const put: FakeCluster['put'] = (resource, given) => {
    const metadata = given['metadata'] as Stored['metadata']
    const key = `${resource}/${metadata.name}`
    const old = objects.get(key)
    const object = { ...old, ...given } as unknown as Stored
    object.metadata = { ...old?.metadata, ...metadata, uid: old?.metadata.uid ?? `uid-${++uids}` }
    objects.set(key, object)
    tell(resource, old ? 'MODIFIED' : 'ADDED', object)
  }
  const remove: FakeCluster['remove'] = (resource, name) => {
    const object = objects.get(`${resource}/${name}`)
    if (!object) return
    objects.delete(`${resource}/${name}`)
    tell(resource, 'DELETED', object)
    for (const [key, owned] of objects)
      if (owned.metadata.ownerReferences?.some(({ uid }) => uid === object.metadata.uid))
        remove(key.split('/')[0] ?? '', owned.metadata.name)
  }

  const wrongJob = (body: Record<string, unknown>): string | null => {
    const spec = body['spec'] as Record<string, unknown> | undefined
    const template = spec?.['template'] as { spec?: Record<string, unknown> } | undefined
    const containers = template?.spec?.['containers']
    if (!Array.isArray(containers) || containers.length === 0)
      return 'spec.template.spec.containers: Required value'
    const policy = template?.spec?.['restartPolicy']
    if (policy !== 'Never' && policy !== 'OnFailure')
      return 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    return null
  }
  const wrong = (resource: string, body: Record<string, unknown>): string | null => {
    const { name = '', labels = {} } = (body['metadata'] ?? {}) as Partial<Stored['metadata']>
    const kind = { jobs: 'batch/v1 Job', pods: 'v1 Pod', secrets: 'v1 Secret' }[resource]
    if (`${String(body['apiVersion'])} ${String(body['kind'])}` !== kind) return `it is no ${kind}`
    if (!NAME.test(name)) return `metadata.name: Invalid value: ${JSON.stringify(name)}`
    const bad = Object.values(labels).find((value) => !LABEL.test(value))
    if (bad !== undefined) return `metadata.labels: Invalid value: ${JSON.stringify(bad)}`
    return resource === 'jobs' ? wrongJob(body) : null
  }

  const answer = (response: ServerResponse, status: number, body: unknown): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  const no = (response: ServerResponse, code: number, message: string): void =>
    answer(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, message })

  const watch = (resource: string, query: URLSearchParams, response: ServerResponse): void => {
    const since = Number(query.get('resourceVersion'))
    const selector = query.get('labelSelector') ?? ''
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (since < oldest) {
      const object = { kind: 'Status', code: 410, message: `too old resource version: ${since}` }
      return void response.end(line('ERROR', object))
    }
    for (const past of history)
      if (past.resource === resource && past.version > since && matches(past.object, selector))
        response.write(line(past.type, past.object))
    const watcher = { resource, selector, response }
    watchers.add(watcher)
    response.once('close', () => watchers.delete(watcher))
  }

  const serve = (
    request: IncomingMessage,
    url: URL,
    body: Record<string, unknown> | null,
    response: ServerResponse,
  ): void => {
    const [, group, , resource = '', name, log] = PLACE.exec(url.pathname) ?? []
    if (group === undefined || (group === 'apis/batch/v1') !== (resource === 'jobs'))
      return no(response, 404, 'the server could not find the requested resource')
    const { method = '' } = request
    const key = `${resource}/${name}`
    const object = objects.get(key)
    if (method === 'POST' && name === undefined && body !== null) {
      if (request.headers['content-type'] !== 'application/json')
        return no(response, 415, 'the body is no JSON')
      const why = wrong(resource, body)
      if (why !== null) return no(response, 422, why)
      const made = (body['metadata'] as Stored['metadata']).name
      if (objects.has(`${resource}/${made}`))
        return no(response, 409, `${resource} "${made}" already exists`)
      put(resource, body)
      return answer(response, 201, objects.get(`${resource}/${made}`))
    }
    if (method === 'GET' && name === undefined) {
      if (url.searchParams.get('watch') === '1') return watch(resource, url.searchParams, response)
      const selector = url.searchParams.get('labelSelector') ?? ''
      const items = [...objects]
        .filter(([at, one]) => at.startsWith(`${resource}/`) && matches(one, selector))
        .map(([, one]) => one)
      return answer(response, 200, { metadata: { resourceVersion: String(version) }, items })
    }
    if (!object) return no(response, 404, `${resource} "${name}" not found`)
    if (method === 'GET' && log !== undefined) return void response.end('the last of its lines\n')
    if (method === 'GET') return answer(response, 200, object)
    if (method !== 'DELETE') return no(response, 405, 'the method is not allowed')
    const { preconditions, propagationPolicy } = (body ?? {}) as {
      preconditions?: { uid?: string }
      propagationPolicy?: string
    }
    if (preconditions?.uid !== undefined && preconditions.uid !== object.metadata.uid)
      return no(response, 409, 'the UID in the precondition does not match')
    if (propagationPolicy === 'Foreground') {
      object.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
      object.metadata.finalizers = ['foregroundDeletion']
      tell(resource, 'MODIFIED', object)
    } else remove(resource, object.metadata.name)
    answer(response, 200, object)
  }

  const server = createServer((request, response) => {
    void (async () => {
      let text = ''
      for await (const part of request as AsyncIterable<Buffer>) text += part.toString()
      const url = new URL(request.url ?? '', 'http://cluster')
      const body = text === '' ? null : (JSON.parse(text) as Record<string, unknown>)
      requests.push({ method: request.method ?? '', path: `${url.pathname}${url.search}`, body })
      if (request.headers.authorization !== `Bearer ${token}`)
        return no(response, 401, 'Unauthorized')
      const fault = faults.shift()
      if (typeof fault === 'number') return no(response, fault, `planned: ${fault}`)
      if (fault === 'cut') return void request.socket.destroy()
      if (fault === 'cut_after') {
        // done, and nobody hears of it
        response.write = () => true
        response.end = () => response
        serve(request, url, body, response)
        return void request.socket.destroy()
      }
      serve(request, url, body, response)
    })()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const cutWatches = (how?: 'gone'): void => {
    if (how === 'gone') oldest = ++version
    for (const { response } of watchers) response.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    faults,
    objects,
    put,
    remove,
    cutWatches,
    watchers: () => watchers.size,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
