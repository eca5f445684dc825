// OpenWorkflow on PostgreSQL. Its worker sleeps while all its slots are taken, so it has many.
import { OpenWorkflow } from 'openworkflow'
import { BackendPostgres } from 'openworkflow/postgres'

const CONCURRENCY = 64

export const isDurable = true
export const left = `select count(*) from openworkflow.workflow_runs where status in ('pending', 'running', 'sleeping')`

export const open = async (url) => {
  const backend = await BackendPostgres.connect(url)
  const engine = new OpenWorkflow({ backend })
  let begin = () => undefined
  const one = engine.defineWorkflow({ name: 'one' }, ({ input, step }) =>
    step.run({ name: 's' }, async () => begin(input.key)),
  )
  const twenty = engine.defineWorkflow({ name: 'twenty' }, async ({ input, step }) => {
    for (let i = 0; i < 20; i++) await step.run({ name: `s${i}` }, async () => begin(input.key))
  })
  const workflows = { one, twenty }
  const handles = new Map()
  return {
    start: async (workflow, key) => {
      const handle = await workflows[workflow].run({ key })
      handles.set(handle.workflowRun.id, handle)
      return handle.workflowRun.id
    },
    result: (id) => handles.get(id).result(),
    async work(hear) {
      begin = hear
      await engine.newWorker({ concurrency: CONCURRENCY }).start()
    },
  }
}
