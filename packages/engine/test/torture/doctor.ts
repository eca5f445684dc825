// `leasehold doctor --json`, as somebody would call it: what it finds wrong, as sentences.
import { spawn } from 'node:child_process'
import { messageOf } from '../../src/kernel/json.ts'
import type { Place } from './place.ts'

export const doctor = (
  { main, folder }: Place,
  url: string,
  env: Readonly<Record<string, string>>,
): Promise<string[]> =>
  new Promise((resolve) => {
    const args = [main, 'doctor', '--url', url, '--json']
    const child = spawn(process.execPath, args, { cwd: folder, env })
    let out = ''
    let err = ''
    child.stdout.on('data', (data: Buffer) => (out += data.toString()))
    child.stderr.on('data', (data: Buffer) => (err += data.toString()))
    child.once('close', () => {
      try {
        const { findings } = JSON.parse(out) as {
          findings: { check: string; ok: boolean; what: string }[]
        }
        resolve(findings.filter(({ ok }) => !ok).map((each) => `${each.check}: ${each.what}`))
      } catch (error) {
        resolve([`it could not be asked: ${messageOf(error)}\n${out}\n${err}`])
      }
    })
  })
