// What a webhook's payload contains, and how much it matters: plain functions, decided by the payload alone.
export interface Part {
  readonly name: string
  readonly value: unknown
}

const LISTS = [
  'commits',
  'pages',
  'labels',
  'repositories',
  'repositories_added',
  'branches',
  'assignees',
]
const MOST = 12

/** Commits with their files, or labels, pages and the like where it has some; else what stands under its keys. */
export const partsOf = (payload: Readonly<Record<string, unknown>>): Part[] => {
  const holders = [payload, payload['issue'], payload['pull_request']].filter(isObject)
  const listed = holders.flatMap((holder) =>
    LISTS.flatMap((list) => {
      const items = holder[list]
      return Array.isArray(items)
        ? items.flatMap((item: unknown, i) => [
            { name: `${list} ${i + 1}`, value: item },
            ...filesOf(item),
          ])
        : []
    }),
  )
  const parts =
    listed.length > 0 ? listed : Object.entries(payload).map(([name, value]) => ({ name, value }))
  return parts.slice(0, MOST)
}

const filesOf = (item: unknown): Part[] =>
  isObject(item)
    ? ['added', 'modified', 'removed'].flatMap((what) => {
        const files = item[what]
        return Array.isArray(files)
          ? files.map((file: unknown) => ({ name: `${what} ${String(file)}`, value: file }))
          : []
      })
    : []

export type Kind = 'sensitive' | 'code' | 'talk' | 'upkeep'

const SENSITIVE =
  /^(security_advisory|member|membership|org_block|public|deploy_key|repository_vulnerability_alert|code_scanning_alert)$/
const CODE =
  /^(push|pull_request.*|check_.*|commit_comment|create|delete|release|status|workflow_.*|deployment.*|merge_group)$/
const TALK = /^(issues|issue_comment|discussion.*|gollum|label|milestone|star|watch|fork)$/

export const classOf = ({
  event,
  action,
}: {
  readonly event: string
  readonly action: string | null
}): Kind => {
  if (SENSITIVE.test(event) || (event === 'repository' && action === 'deleted')) return 'sensitive'
  if (CODE.test(event)) return 'code'
  return TALK.test(event) ? 'talk' : 'upkeep'
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
