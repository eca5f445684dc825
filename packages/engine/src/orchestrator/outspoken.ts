// The way in of executors in this process, with a voice: what is no fault and no refusal is a mistake of our own. Over HTTP
// the handler says it; here the executor would only try again, for ever and in silence.
import { LeaseholdError } from '../kernel/errors.ts'
import type { Ports } from '../kernel/ports.ts'
import { seldom } from '../kernel/seldom.ts'
import type { DirectPort } from './executor-port.ts'

export const outspoken = (port: DirectPort, { log, time }: Ports): DirectPort => {
  const say = seldom(log, time)
  const heard = async <T>(call: string, asked: Promise<T>): Promise<T> => {
    try {
      return await asked
    } catch (error) {
      if (!(error instanceof LeaseholdError))
        say('engine.defect', `${call} ${error instanceof Error ? error.name : typeof error}`, {
          call,
          error,
        })
      throw error
    }
  }
  return {
    register: (request) => heard('register', port.register(request)),
    claim: (request, signal) => heard('claim', port.claim(request, signal)),
    journal: (session, run, after) => heard('journal', port.journal(session, run, after)),
    write: (session, write) => heard('write', port.write(session, write)),
    renew: (request) => heard('renew', port.renew(request)),
    renewed: (request, answer) => port.renewed(request, answer),
    close: (request) => heard('close', port.close(request)),
    logs: (session, parts) => heard('logs', port.logs(session, parts)),
    listen: (session, tell) => port.listen(session, tell),
  }
}
