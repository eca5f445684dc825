#!/usr/bin/env node
// The program. Node keeps the code that it compiled, where it can (22.1 and newer), so that the next call starts sooner; it
// must be told before anything else is loaded.
import * as node from 'node:module'

const { enableCompileCache } = node as { enableCompileCache?: () => unknown }
enableCompileCache?.()
await import('./called.ts')
