// DBOS: a client enqueues, a worker of the same process takes what is queued. It takes all at once where no concurrency is set,
// and polls twenty times a second instead of once.
import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk'

const POLL_MS = 50
const logger = {
  info() {},
  debug() {},
  warn() {},
  error: (...said) => process.stderr.write(`${said.join(' ')}\n`),
}

export const isDurable = true
export const left = `select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')`

export const open = async (url) => {
  await DBOS.migrate(url)
  const client = await DBOSClient.create({
    systemDatabaseUrl: url,
    systemDatabasePoolSize: 20,
    applicationName: 'bench',
    logger,
  })
  await client.registerQueue('q', { minPollingIntervalMs: POLL_MS })
  return {
    start: async (workflowName, key) => {
      const { workflowID } = await client.enqueue(
        { queueName: 'q', workflowName, appVersion: '1' },
        key,
      )
      return workflowID
    },
    result: (id) => client.retrieveWorkflow(id).getResult(),
    async work(begin) {
      DBOS.setConfig({
        name: 'bench',
        systemDatabaseUrl: url,
        systemDatabasePoolSize: 10,
        applicationVersion: '1',
        executorID: 'local',
        logger,
      })
      DBOS.registerWorkflow((key) => DBOS.runStep(async () => begin(key), { name: 's' }), {
        name: 'one',
      })
      DBOS.registerWorkflow(
        async (key) => {
          for (let i = 0; i < 20; i++) await DBOS.runStep(async () => begin(key), { name: `s${i}` })
        },
        { name: 'twenty' },
      )
      await DBOS.launch()
      await DBOS.registerQueue('q', {
        minPollingIntervalMs: POLL_MS,
        onConflict: 'always_update',
      })
    },
  }
}
