// What this process knows and nobody may read in a log: its tokens, and what its environment holds.
import { secretsIn } from '../../model/redaction.ts'
import type { Config } from './config.ts'
import type { Sources } from './sources.ts'

export const secretsOf = ({ env }: Pick<Sources, 'env'>, config: Config): string[] => [
  ...secretsIn(env, config.redact),
  ...[config.token, config.operatorToken, config.viewerToken, config.executorToken].filter(
    (token) => token !== null,
  ),
  ...Object.values(config.hookSecrets),
]
