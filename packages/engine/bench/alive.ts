// False deaths: executors that live, and whose renewals are lost again and again, before they arrive or their answers after.
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from '../src/client/connect.ts'
import { seededRandom } from '../src/kernel/random.ts'
import { begun, begunIn, commandsIn, front, place } from './commands.ts'
import type { Figures } from './figures.ts'

const EXECUTORS = 10
const LOST = 0.3

/** `minutes` of ten executors with the lease that is the default, each with a body that never ends. */
const alive = async (dir: string, minutes: number): Promise<Figures> => {
  const cwd = place(dir)
  const { serve, work } = commandsIn(cwd)
  const server = await serve()
  const between = await front(server.said)
  const executors = []
  for (let i = 0; i < EXECUTORS; i++) executors.push(await work(between.url))
  const client = connect({ url: server.said })
  for (let i = 0; i < EXECUTORS; i++) await client.start('holds', null)
  await begun(cwd, EXECUTORS)

  const random = seededRandom(1)
  let [renewals, lost] = [0, 0]
  between.answer(({ url }) => {
    if (url !== '/v1/executor/renew') return null
    renewals += 1
    if (random.next() >= LOST) return null
    lost += 1
    return (incoming) => void incoming.socket.destroy()
  })
  await pause(minutes * 60_000)

  const gone = executors.filter(({ child }) => child.exitCode !== null).length
  // a body begins again only where the session that held its run was taken for dead
  const deaths = begunIn(cwd).length - EXECUTORS + gone
  for (const { child, exited } of [...executors, server]) {
    child.kill('SIGKILL')
    await exited
  }
  between.close()
  return { deaths, renewals, lost, hours: (EXECUTORS * minutes) / 60 }
}

export const aliveFigures: Readonly<
  Record<string, (dir: string, minutes: number) => Promise<Figures>>
> = { alive }
