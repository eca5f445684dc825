// Variables of the environment that look like ours and are read by nobody.
import { defaults } from '../../model/settings.ts'
import { items } from './config.ts'
import type { Sources } from './sources.ts'
import { envName } from './sources.ts'

/** Variables that processes of ours give to those that they start. */
const HANDED_ON = ['LEASEHOLD_RUN', 'LEASEHOLD_ATTEMPT', 'LEASEHOLD_SESSION']

/** A sentence for each variable that has our name and is no setting: it is mistyped, or of another version. */
export const unknownVariables = ({ env }: Pick<Sources, 'env'>): string[] => {
  const names = [...Object.keys(items), ...Object.keys(defaults)]
  const ours = new Set([
    'LEASEHOLD_CONFIG',
    ...HANDED_ON,
    ...names.map(envName),
    ...Object.entries(items).flatMap(([name, { secret }]) =>
      secret ? [`${envName(name)}_FILE`] : [],
    ),
  ])
  return Object.keys(env)
    .filter((name) => name.startsWith('LEASEHOLD_') && !ours.has(name))
    .filter((name) => !OF_OTHERS.test(name))
    .map((name) => {
      const near = names.find((each) => letters(envName(each)) === letters(name))
      return `${name} is not a setting (environment); ${near === undefined ? '`leasehold config` lists those that there are' : `did you mean ${envName(near)}?`}`
    })
}

/** Of sinks, by names that the file has, and what Kubernetes sets beside a Service named leasehold. */
const OF_OTHERS = /^LEASEHOLD_(SINK_|SERVICE_|PORT_\d)/
const letters = (name: string): string => name.replace(/_/g, '')
