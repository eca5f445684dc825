// `leasehold logs`: what the attempts of a run have written, and what they write. A line a line, so that other programs can
// read it; what was left out is said.
import type { Client, LogLine } from '../../client/client.ts'
import type { Run } from '../call.ts'
import { exit } from '../exit.ts'
import type { Output } from '../output.ts'
import { clock, plainText, short } from '../said.ts'
import { reach, runNamed } from '../server.ts'
import { wholeNumber } from '../whole-number.ts'

interface Options {
  readonly attempt?: string
  readonly follow?: boolean
}

export const run: Run<Options> = async ({ args: [given], options, out, sources }) => {
  const { client } = reach(sources)
  const id = await runNamed(client, given)
  const attempt = wholeNumber(options.attempt, '--attempt', { least: 1 })
  const of = attempt === undefined ? {} : { attempt }
  const lines = options.follow ? client.followLogs(id, of) : written(client, id, of)
  let shown: number | null = null
  for await (const line of lines) {
    if (options.json) {
      out.line(JSON.stringify(line))
      continue
    }
    if (line.attempt !== shown) out.line(out.colors.bold(`attempt ${line.attempt}`))
    shown = line.attempt
    if (line.dropped > 0) out.line(out.colors.dim(`… ${leftOut(line.dropped)} …`))
    out.line(told(out, line))
  }
  if (shown === null && !options.json)
    out.note(
      attempt === undefined
        ? `no attempt of ${id} has written anything`
        : `attempt ${attempt} of ${id} has written nothing`,
    )
  return exit.ok
}

async function* written(
  client: Client,
  run: string,
  of: { readonly attempt?: number },
): AsyncGenerator<LogLine, void, undefined> {
  let after: string | null = '0'
  while (after !== null) {
    const page: Awaited<ReturnType<Client['logs']>> = await client.logs(run, { ...of, after })
    yield* page.lines
    after = page.next
  }
}

const leftOut = (count: number): string =>
  count === 1 ? '1 line was not kept' : `${count.toLocaleString('en')} lines were not kept`

const told = ({ colors }: Output, { at, source, text, facts }: LogLine): string => {
  const when = colors.dim(clock(at))
  const said = source === 'stderr' ? colors.yellow(plainText(text)) : plainText(text)
  return facts === null
    ? `${when} ${said}`
    : `${when} ${said} ${colors.dim(plainText(short(facts, 1_000)))}`
}
