// The audit over every run that there is, put together of its pages.
import type { AnswerOf, SentQueryOf } from '../protocol/route.ts'
import type { Routes } from '../protocol/routes.ts'

type Page = AnswerOf<Routes['audit']>

const SHOWN = 10

/** Asks for page after page, and answers each invariant once: how many break it, and some of them. */
export const wholeAudit = async (
  page: (query: SentQueryOf<Routes['audit']>) => Promise<Page>,
): Promise<Pick<Page, 'healthy' | 'invariants'>> => {
  const found = new Map<string, Page['invariants'][number]>()
  let after: string | null | undefined
  while (after !== null) {
    const read: Page = await page(after === undefined ? {} : { after })
    for (const each of read.invariants) {
      const known = found.get(each.name)
      // a run of the first answer comes again in its page
      const sample = [...new Set([...(known?.sample ?? []), ...each.sample])]
      found.set(each.name, {
        ...each,
        figure: Math.max(known?.figure ?? 0, each.figure, sample.length),
        sample: sample.slice(0, SHOWN),
      })
    }
    after = read.next
  }
  const invariants = [...found.values()]
  return { healthy: invariants.every(({ figure }) => figure === 0), invariants }
}
