// Compares parents and children and mends what a crash left between them.
import { reconcile } from '../transitions/reconcile.ts'
import type { Sweep } from './loop.ts'

export const reconcileFamilies = (sweepMs: number): Sweep => ({
  name: 'reconcile-families',
  intervalMs: sweepMs,
  pass: (upkeep) => upkeep.act((tx) => reconcile(tx, 500)),
})
