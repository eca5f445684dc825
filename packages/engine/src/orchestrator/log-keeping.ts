// Lines that executors send of their attempts, on their way into the store: beside all else, and shown to those who follow.
import type { LogAnswer, LogPart } from '../model/log.ts'
import { keepLogs } from '../transitions/keep-logs.ts'
import type { Engine } from './engine.ts'

/** Keeps them and tells who follows. */
export const keepLines = async (
  engine: Engine,
  session: string,
  parts: readonly LogPart[],
): Promise<LogAnswer> => {
  const most = engine.settings.logMaxChars
  const runs = await engine.store.run((tx) => keepLogs(tx, { session, parts, most }))
  for (const run of new Set(runs)) engine.hub.logged(run)
  return { ok: true, kept: runs.length }
}
