// The command line in the process of the test: what it says, and the code that it would end with.
import { Writable } from 'node:stream'
import { makeOutput } from '../../src/cli/output.ts'
import { runProgram } from '../../src/cli/run-program.ts'

export const program = async (
  args: readonly string[],
  { cwd = '/', env = {} }: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<{ code: number; out: string; err: string }> => {
  const said = (): { stream: NodeJS.WriteStream; text: () => string } => {
    let text = ''
    const stream = new Writable({
      write(chunk: Buffer, _encoding, done) {
        text += chunk.toString()
        done()
      },
    })
    return { stream: stream as unknown as NodeJS.WriteStream, text: () => text }
  }
  const [out, err] = [said(), said()]
  const code = await runProgram(args, {
    out: makeOutput(out.stream, err.stream, env),
    env,
    cwd,
    version: 'test',
  })
  return { code, out: out.text(), err: err.text() }
}
