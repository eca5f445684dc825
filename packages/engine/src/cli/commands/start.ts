// `leasehold start`: starts a run, and with --wait stays until it has ended.
import { systemPorts } from '../../kernel/ports.ts'
import type { Run } from '../call.ts'
import { durationOption } from '../duration-option.ts'
import { exit } from '../exit.ts'
import { readJson } from '../json-argument.ts'
import { reach } from '../server.ts'
import { PRIORITY, wholeNumber } from '../whole-number.ts'
import { waitForEnd } from '../wait-for-end.ts'

interface Options {
  readonly input?: string
  readonly key?: string
  readonly owner?: string
  readonly toVersion?: string
  readonly queue?: string
  readonly priority?: string
  readonly delay?: string
  readonly id?: string
  /** True without a duration. */
  readonly wait?: string | true
}

export const run: Run<Options> = async ({ args: [workflow = ''], options, out, sources }) => {
  const waitMs = durationOption(options.wait === true ? undefined : options.wait, '--wait')
  const delayMs = durationOption(options.delay, '--delay')
  const priority = wholeNumber(options.priority, '--priority', PRIORITY)
  const input = await readJson(options.input, sources.cwd)
  const { client } = reach(sources, options.wait === undefined ? {} : { patientMs: 30_000 })
  const started = await client.start(workflow, input, {
    id: options.id ?? systemPorts().ids.next('run'),
    ...(options.key === undefined ? {} : { key: options.key }),
    ...(options.owner === undefined ? {} : { owner: options.owner }),
    ...(options.toVersion === undefined ? {} : { version: options.toVersion }),
    ...(options.queue === undefined ? {} : { queue: options.queue }),
    ...(priority === undefined ? {} : { priority }),
    ...(delayMs === undefined ? {} : { delayMs }),
  })
  if (options.wait === undefined) {
    if (options.json) out.json(started)
    else
      out.line(
        `${started.id} ${started.status}${started.started ? '' : ' (it had been started before)'}`,
      )
    return exit.ok
  }
  out.note(`${started.id} ${started.status}`)
  return waitForEnd({
    client,
    run: started.id,
    out,
    json: options.json === true,
    ...(waitMs === undefined ? {} : { waitMs }),
  })
}
