// What is asked of a Kubernetes cluster for one attempt: a job of one pod, made from the operator's template, and a secret that goes
// with it. The token stands in the secret alone; the pod waits until that is there.
import { LeaseholdError } from '../../kernel/errors.ts'
import { digestOf } from '../../kernel/digest.ts'
import type { KubernetesObject, Manifest } from './kubernetes-api.ts'
import type { PodLabel, PodOrder } from './launcher.ts'

type Shape = Readonly<Record<string, unknown>>

/** A pod template as an operator gives it, looked at: its first container runs `leasehold attempt`. */
export interface PodTemplate {
  readonly metadata: Shape
  readonly spec: Shape
  readonly containers: readonly Shape[]
}

export const MANAGED = 'app.kubernetes.io/managed-by'
export const LAUNCHER = 'leasehold/launcher'
export const ATTEMPT = 'leasehold/attempt'
const KEY = 'token'
const KILL_LIMIT_S = 30
/** How long a job that is over stays where its launcher has gone. */
const KEPT_S = 600

const isShape = (value: unknown): value is Shape =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Throws `invalid_config` where no attempt could be driven by a pod made from it. */
export const mustBeTemplate = (given: unknown, where: string): PodTemplate => {
  const no = (found: string, expected: string): LeaseholdError =>
    new LeaseholdError('invalid_config', `${where}: ${found}; expected ${expected}`)
  const { metadata = {}, spec } = isShape(given) ? given : {}
  if (!isShape(metadata) || !isShape(spec))
    throw no('it has no spec', 'a pod template: { "spec": { "containers": [{ "image": … }] } }')
  const { containers, restartPolicy = 'Never', terminationGracePeriodSeconds = KILL_LIMIT_S } = spec
  if (!Array.isArray(containers) || containers.length === 0 || !containers.every(isShape))
    throw no(
      `spec.containers is ${JSON.stringify(containers)}`,
      'containers, the first of which runs `leasehold attempt <module>`',
    )
  if (typeof containers[0]?.['image'] !== 'string')
    throw no('the first container has no image', 'one with Leasehold and the workflows')
  if (restartPolicy !== 'Never')
    throw no(
      `spec.restartPolicy is ${JSON.stringify(restartPolicy)}`,
      'Never, or none: an attempt is adopted once',
    )
  if (typeof terminationGracePeriodSeconds !== 'number')
    throw no('spec.terminationGracePeriodSeconds is no number', 'seconds')
  return { metadata, spec, containers }
}

const environmentOf = ({ containers: [first = {}] }: PodTemplate): readonly Shape[] =>
  Array.isArray(first['env']) ? first['env'].filter(isShape) : []

/** What its process is given as this variable; undefined where that is not to be read from the template. */
export const variableOf = (template: PodTemplate, name: string): string | undefined => {
  const found = environmentOf(template).find((each) => each['name'] === name)
  return typeof found?.['value'] === 'string' ? found['value'] : undefined
}

/** When the cluster kills the process after its signal. */
export const killLimitOf = ({ spec }: PodTemplate): number =>
  Number(spec['terminationGracePeriodSeconds'] ?? KILL_LIMIT_S) * 1_000

/** The same for a repeat, and for nothing else. */
const hashOf = ({ run, attempt }: PodLabel): string =>
  digestOf(Buffer.from(`${run}#${attempt}`)).slice(0, 40)

export const nameOf = (label: PodLabel): string => `leasehold-${hashOf(label)}`

export const labelsOf = (label: PodLabel, launcher: string): Readonly<Record<string, string>> => ({
  [MANAGED]: 'leasehold',
  [LAUNCHER]: launcher,
  [ATTEMPT]: hashOf(label),
})

/** The job of an attempt. `url` is where its process finds the server. */
export const jobOf = (
  { label, runner, startBy }: Omit<PodOrder, 'token'>,
  template: PodTemplate,
  { launcher, url }: { readonly launcher: string; readonly url: string },
): Manifest => {
  const name = nameOf(label)
  const labels = labelsOf(label, launcher)
  const [first = {}, ...others] = template.containers
  const env = environmentOf(template)
  const unless = (variable: string, value: string): readonly Shape[] =>
    env.some((each) => each['name'] === variable) ? [] : [{ name: variable, value }]
  const { labels: theirs } = template.metadata
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name,
      labels,
      annotations: {
        'leasehold/session': label.session,
        'leasehold/run': label.run,
        'leasehold/attempt-number': String(label.attempt),
        'leasehold/runner': runner,
        'leasehold/start-by': String(startBy),
      },
    },
    spec: {
      // an attempt that is lost is driven anew as another one, by whoever the engine gives it to
      backoffLimit: 0,
      completions: 1,
      parallelism: 1,
      ttlSecondsAfterFinished: KEPT_S,
      template: {
        metadata: {
          ...template.metadata,
          labels: { ...(isShape(theirs) ? theirs : {}), ...labels },
        },
        spec: {
          ...template.spec,
          restartPolicy: 'Never',
          containers: [
            {
              name: 'attempt',
              // what it said last is the evidence of how it ended
              terminationMessagePolicy: 'FallbackToLogsOnError',
              ...first,
              env: [
                ...env.filter((each) => each['name'] !== 'LEASEHOLD_ATTEMPT_TOKEN'),
                ...unless('LEASEHOLD_URL', url),
                ...unless('LEASEHOLD_KILL_LIMIT_MS', String(killLimitOf(template))),
                {
                  name: 'LEASEHOLD_ATTEMPT_TOKEN',
                  valueFrom: { secretKeyRef: { name, key: KEY } },
                },
              ],
            },
            ...others,
          ],
        },
      },
    },
  }
}

/** The secret of a job: it goes with it. */
export const secretOf = (
  { label, token }: PodOrder,
  launcher: string,
  { metadata: { name, uid } }: KubernetesObject,
): Manifest => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name,
    labels: labelsOf(label, launcher),
    ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid }],
  },
  type: 'Opaque',
  stringData: { [KEY]: token },
})

/** Of which attempt a job says that it is, and until when that may begin; null where it does not. */
export const orderOf = ({ metadata }: KubernetesObject): Omit<PodOrder, 'token'> | null => {
  const annotations = metadata.annotations ?? {}
  const session = annotations['leasehold/session']
  const run = annotations['leasehold/run']
  const runner = annotations['leasehold/runner']
  const attempt = Number(annotations['leasehold/attempt-number'])
  const startBy = Number(annotations['leasehold/start-by'])
  return session === undefined ||
    run === undefined ||
    runner === undefined ||
    !Number.isInteger(attempt) ||
    !Number.isFinite(startBy)
    ? null
    : { label: { session, run, attempt }, runner, startBy }
}
