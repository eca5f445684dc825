// Graphile Worker: a queue without steps, results or history, for what a run costs where nothing of it is kept.
import { Logger, makeWorkerUtils, run, runMigrations } from 'graphile-worker'

const logger = new Logger(() => (level, message) => {
  if (level === 'error') process.stderr.write(`${message}\n`)
})

export const isDurable = false
export const left = 'select count(*) from graphile_worker._private_jobs'

export const open = async (url) => {
  const worker = { connectionString: url, maxPoolSize: 20, logger }
  await runMigrations({ preset: { worker } })
  const utils = await makeWorkerUtils({ preset: { worker } })
  return {
    start: async (task, key) => String((await utils.addJob(task, { key })).id),
    async work(begin) {
      await run({
        preset: {
          worker: {
            ...worker,
            concurrentJobs: 50,
            pollInterval: 2_000,
            localQueue: { size: 1_000 },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
        noHandleSignals: true,
        taskList: { one: async ({ key }) => void begin(key) },
      })
    },
  }
}
