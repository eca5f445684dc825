// The launcher of `leasehold work --job-template`: its cluster, its template, and the server that both it and its pods speak to.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { httpLaunchPort } from '../client/launch-port.ts'
import { peerOf } from '../client/peer.ts'
import type { Cluster } from '../executor/pods/kubernetes-api.ts'
import { inCluster, kubernetesApi, KubernetesError } from '../executor/pods/kubernetes-api.ts'
import { kubernetesPods } from '../executor/pods/kubernetes-pods.ts'
import type { Launcher } from '../executor/pods/launcher.ts'
import { ABORT_GRACE_MS, DRAIN_MS, mustEndBefore } from '../executor/options.ts'
import type { PodTemplate } from '../executor/pods/pod-template.ts'
import { killLimitOf, mustBeTemplate, variableOf } from '../executor/pods/pod-template.ts'
import { milliseconds } from '../kernel/duration.ts'
import { messageOf } from '../kernel/json.ts'
import type { Ports } from '../kernel/ports.ts'
import type { Config } from './config/config.ts'
import type { Sources } from './config/sources.ts'
import { UsageError } from './exit.ts'

/** Throws where the template or the cluster cannot be used; whether the cluster answers is seen when it is needed. */
export const clusterLauncher = (
  config: Config & { readonly jobTemplate: string },
  { cwd, env }: Sources,
  ports: Ports,
): Launcher => {
  const { timers } = ports
  const template = templateAt(resolve(cwd, config.jobTemplate))
  const peer = peerOf({
    url: config.url,
    token: config.token ?? config.executorToken,
    actor: config.actor,
    fetch: (input, init) => fetch(input, init),
    timers,
  })
  const pods = kubernetesPods({
    api: kubernetesApi(clusterOf(config, env), timers),
    timers,
    template,
    url: config.url,
    launcher: ports.ids.next('own'),
  })
  return { ...httpLaunchPort(peer), pods, startByMs: config.jobStartByMs }
}

const templateAt = (file: string): PodTemplate => {
  let given: unknown
  try {
    given = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`the job template ${file} cannot be read: ${messageOf(error)}`)
  }
  const template = mustBeTemplate(given, `the job template ${file}`)
  const said = (name: string, unsaid: number): number => {
    const value = variableOf(template, name)
    if (value === undefined) return unsaid
    return milliseconds(/^\d+$/.test(value) ? Number(value) : value, name)
  }
  mustEndBefore({
    killLimitMs: killLimitOf(template),
    drainMs: said('LEASEHOLD_DRAIN_MS', DRAIN_MS),
    abortGraceMs: said('LEASEHOLD_ABORT_GRACE_MS', ABORT_GRACE_MS),
  })
  return template
}

const clusterOf = (
  { cluster, clusterNamespace, clusterToken }: Config,
  env: Sources['env'],
): Cluster => {
  if (cluster !== null)
    return {
      server: cluster,
      namespace: clusterNamespace ?? 'default',
      token: () => clusterToken,
    }
  try {
    const own = inCluster(env)
    return { ...own, namespace: clusterNamespace ?? own.namespace }
  } catch (error) {
    if (!(error instanceof KubernetesError)) throw error
    throw new UsageError(
      'there is a job template, and this process is in no pod of a cluster; name its API with --cluster, as `kubectl proxy` has it',
    )
  }
}
