// The program of a thread that renews in the database itself, for an executor that has no server between.
import * as thread from 'node:worker_threads'
import { renewInThread, RENEWAL_MS } from '../executor/session/renewal-loop.ts'
import { noLog } from '../kernel/log.ts'
import { systemPorts } from '../kernel/ports.ts'
import type { OpenPostgresOptions } from '../orchestrator/open-postgres.ts'
import { renewerOn } from '../orchestrator/open-postgres.ts'

const reach = thread.workerData as Pick<OpenPostgresOptions, 'url' | 'schema'>

// what fails here the main loop misses, and says
renewInThread(renewerOn(reach, systemPorts(noLog), RENEWAL_MS))
