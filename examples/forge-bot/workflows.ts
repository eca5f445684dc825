// A bot for a code forge. An issue is triaged, its plan is made of the task list in it, people are asked where the plan is large
// or touches what is guarded, each task is a child run, and the outcome is commented back. All of it lasts: days may pass before
// somebody answers, and processes may be stopped and killed meanwhile.
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { workflow } from 'leasehold'
import type { Context } from 'leasehold'
import { z } from 'zod'
import { comment, label } from './forge.ts'

const Issue = z.object({
  repository: z.string().includes('/'),
  number: z.number().int(),
  title: z.string(),
  body: z.string().nullable().default(''),
  author: z.string(),
})

const Task = z.object({ repository: z.string(), number: z.number().int(), title: z.string() })
const Done = z.object({ title: z.string(), commit: z.string() })

/** A person's comment on the issue, as the trigger signals it. */
const Comment = z.object({ by: z.string(), body: z.string() })

const GUARDED = /\b(deploy|delete|secret|migrat\w+)\b/i
const TASKS_WITHOUT_ASKING = 3

const kindOf = (title: string): string =>
  /\b(bug|crash|fail|broken)\b/i.test(title) ? 'bug' : 'feature'

/** The open items of a task list. */
const tasksOf = (body: string | null): string[] =>
  [...(body ?? '').matchAll(/^\s*[-*] \[ \] (.+)$/gm)].map(([, task]) => task?.trim() ?? '')

/** One task of a plan. Here it only computes; yours may drive an agent in a sandbox. */
export const task = workflow(
  { name: 'forge task', input: Task, output: Done, retry: { maxAttempts: 2 } },
  async (ctx, { repository, number, title }) => {
    await ctx.sleep('wait for the runner', '200ms')
    const commit = await ctx.step(
      'work',
      async () => {
        await pause(150)
        if (/\bimpossible\b/i.test(title)) throw new Error(`"${title}" cannot be done`)
        return createHash('sha1').update(`${repository}#${number} ${title}`).digest('hex')
      },
      { retry: { maxAttempts: 1 } },
    )
    return { title, commit }
  },
)

export const issue = workflow({ name: 'forge issue', input: Issue }, async (ctx, given) => {
  const { repository, number, title, body } = given
  const kind = await ctx.step('triage', ({ signal }) => {
    const found = kindOf(title)
    return label(given, [found], signal).then(() => found)
  })
  const tasks = await ctx.step('plan', () => tasksOf(body))
  if (tasks.length === 0) {
    await ctx.step('nothing to do', (step) =>
      comment(given, `This ${kind} has no open task that I could take on.`, step),
    )
    return { outcome: 'nothing to do', done: 0 }
  }

  const asks = tasks.length > TASKS_WITHOUT_ASKING || tasks.some((each) => GUARDED.test(each))
  if (asks) {
    const list = tasks.map((each) => `- ${each}`).join('\n')
    await ctx.step('ask', (step) =>
      comment(given, `I plan to do:\n\n${list}\n\nAnswer \`/approve\` or \`/reject\`.`, step),
    )
    const answer = await decision(ctx)
    if (answer !== 'approve') {
      await ctx.step('leave it', (step) =>
        comment(given, answer === null ? 'Nobody has answered.' : 'As you wish.', step),
      )
      return { outcome: answer === null ? 'unanswered' : 'rejected', done: 0 }
    }
  }

  const results = await ctx.mapSettled('tasks', tasks, (scope, each) =>
    scope.run(task, { repository, number, title: each }),
  )
  const lines = results.map((each, i) =>
    each.ok ? `- [x] ${tasks[i]} (${each.value.commit.slice(0, 10)})` : `- [ ] ${tasks[i]} failed`,
  )
  await ctx.step('report', (step) => comment(given, `Done:\n\n${lines.join('\n')}`, step))
  return { outcome: 'done', done: results.filter(({ ok }) => ok).length }
})

/** The first comment that is an answer; null where none came within a week. */
const decision = async (ctx: Context): Promise<'approve' | 'reject' | null> => {
  for (let heard = 1; ; heard++) {
    const next = await ctx.signal('comment', {
      as: `comment ${heard}`,
      timeout: '7d',
      schema: Comment,
    })
    if (!next.ok) return null
    const [, said] = /^\/(approve|reject)\b/m.exec(next.value.body) ?? []
    if (said === 'approve' || said === 'reject') return said
  }
}
