// The command line as a table: what there is, and what each command takes. A command's code is loaded when it is called,
// so that help comes at once.
import { Command, Option } from 'commander'
import type { Around } from './declaring.ts'
import { acting, declaring, ofServer, reading } from './declaring.ts'

const KILL_LIMIT = 'when the supervisor kills it after its signal; it must have time to stop'

export const makeProgram = (around: Around): Command => {
  const { out, version, json } = around
  const program = new Command('leasehold')
  program
    .description('A durable workflow engine in which nothing that is held is ever stranded.')
    .version(version, '-V, --version')
    // what comes after a command is the command's: else its `--version 99` would be taken for our own
    .enablePositionalOptions()
    .showHelpAfterError('(leasehold <command> --help says what it takes)')
    .configureOutput({
      writeOut: (text) => out.line(text.trimEnd()),
      writeErr: (text) => {
        if (!json) out.note(text.trimEnd())
      },
      outputError: (text) => {
        if (!json) out.error(text.replace(/^error: /, '').trimEnd())
      },
    })
    .exitOverride()
    .addHelpText(
      'after',
      [
        '',
        `Settings come from flags, LEASEHOLD_* variables and leasehold.config.json; \`leasehold config\` shows them.`,
        'A run is named by its id, or `latest`: the newest that no run has started.',
        '',
        'Exit codes: 0 ok · 1 a run failed or something is wrong · 2 usage or configuration · 3 not found ·',
        '            4 conflict · 5 denied · 6 unreachable · 7 timed out waiting',
      ].join('\n'),
    )

  const command = declaring(program, around)

  program.commandsGroup('Begin:')
  command('init [folder]', 'write a small project that runs', () => import('./commands/init.ts'))

  command(
    'dev <module>',
    'server and executor in one process, for work at the desk',
    () => import('./commands/dev.ts'),
  )
    .option('--file <path>', 'SQLite file (default: .leasehold/dev.db)')
    .option('--port <port>', 'port to listen on')
    .option('--slots <count>', 'runs at once')
    .option('--kill-limit-ms <duration>', KILL_LIMIT)
    .option('--log-level <level>', 'debug, info, warn or error')

  program.commandsGroup('Processes:')
  command(
    'serve',
    'the server, on a SQLite file or PostgreSQL',
    () => import('./commands/serve.ts'),
  )
    .option('--file <path>', 'SQLite file')
    .option('--database <url>', 'PostgreSQL database instead (better: LEASEHOLD_DATABASE)')
    .option('--databases <urls>', 'several as one store (better: LEASEHOLD_DATABASES)')
    .option('--host <host>', 'address to listen on')
    .option('--port <port>', 'port to listen on; 0 takes a free one')
    .option('--token <token>', 'token that callers must show')
    .option('--log-level <level>', 'debug, info, warn or error')

  ofServer(
    command(
      'work <module>',
      'an executor: runs the workflows that a module exports',
      () => import('./commands/work.ts'),
    ),
  )
    .option('--via <way>', 'http (long polling), or websocket (work is offered to it)')
    .option('--slots <count>', 'runs at once')
    .option('--queues <names>', 'queues to claim from (default: each workflow’s own)')
    .option('--labels <names>', 'labels that this executor has')
    .option('--build <text>', 'what is shown as its build')
    .option('--drain-ms <duration>', 'how long steps may finish when it is told to stop')
    .option('--kill-limit-ms <duration>', KILL_LIMIT)
    .option(
      '--job-template <file>',
      'a pod template: workflows isolated so run in pods made from it',
    )
    .option('--job-start-by-ms <duration>', 'how long such a pod may take to begin (default: 5m)')
    .option('--cluster <url>', 'the API of their cluster (default: the one that this is a pod of)')
    .option('--cluster-namespace <name>', 'their namespace (default: this pod’s own)')
    .option('--log-level <level>', 'debug, info, warn or error')
    .option('--idle-ms <duration>', 'ends when it has had nothing to do for so long')
    .option('--start-by-ms <duration>', 'ends when no server has let it in for so long')
    .option('--session <id>', 'the id of its session, where somebody has chosen it')
    .option('--tied', 'stops when its standard input ends, as when who started it has gone')

  ofServer(
    command(
      'spawn <module>',
      'starts executors here while a queue waits and no slot is free',
      () => import('./commands/spawn.ts'),
    ),
  )
    .option('--queue <queue>', 'the queue (default: default)')
    .option('--max <count>', 'executors at once (default: 4)')
    .option('--slots <count>', 'runs at once of each')
    .option('--labels <names>', 'labels that they have')
    .option('--after <duration>', 'how long the oldest run must have waited (default: 0)')
    .option('--cooldown <duration>', 'how long after one is started the next is (default: 10s)')
    .option('--start-by <duration>', 'how long one may take to register (default: 1m)')
    .option('--idle <duration>', 'how long one may have nothing to do (default: 1m)')
    .option('--via <way>', 'http (long polling), or websocket (work is offered to them)')
    .option('--build <text>', 'what is shown as their build')
    .option('--drain-ms <duration>', 'how long steps may finish when they are told to stop')
    .option('--log-level <level>', 'debug, info, warn or error')

  command(
    'attempt <module>',
    'drives one attempt, by the token in LEASEHOLD_ATTEMPT_TOKEN, and ends',
    () => import('./commands/attempt.ts'),
  )
    .option('--url <url>', 'address of the server')
    .option('--build <text>', 'what is shown as its build')
    .option('--drain-ms <duration>', 'how long a step may finish when it is told to stop')
    .option('--kill-limit-ms <duration>', KILL_LIMIT)
    .option('--log-level <level>', 'debug, info, warn or error')

  command(
    'migrate',
    'bring a store to this program’s schema',
    () => import('./commands/migrate.ts'),
  )
    .option('--file <path>', 'SQLite file')
    .option('--database <url>', 'PostgreSQL database instead (better: LEASEHOLD_DATABASE)')
    .option('--databases <urls>', 'several as one store (better: LEASEHOLD_DATABASES)')
    .option('--plan', 'only say what would be done, and which locks it takes')
    .option(
      '--to <url>',
      'move all that the file holds to this PostgreSQL database, which must be empty',
    )
    .option('--json', 'print JSON')

  program.commandsGroup('Runs:')
  acting(command('start <workflow>', 'start a run', () => import('./commands/start.ts')))
    .option('--input <json>', 'its input: JSON, @file, or - for stdin')
    .option('--key <key>', 'the same run for the same owner, workflow and key')
    .option('--owner <owner>', 'whose run it is')
    .option('--to-version <version>', 'version of the workflow (default: the current one)')
    .option('--queue <queue>', 'queue')
    .option('--priority <number>', '-100 to 100, higher first')
    .option('--delay <duration>', 'not before, as in 10m')
    .option('--id <id>', 'the run’s id, so that a repeat is safe')
    .option('--wait [duration]', 'wait for its end (default: without limit) and print its result')

  reading(command('runs', 'list runs, newest first', () => import('./commands/runs.ts')))
    .option('--status <list>', 'one or several, by commas')
    .option('--workflow <name>', 'of this workflow')
    .option('--owner <owner>', 'of this owner')
    .option('--queue <queue>', 'of this queue')
    .option('--label <label>', 'with this label')
    .addOption(
      new Option('--wait-on <kind>', 'that wait for this').choices([
        'child',
        'workspace',
        'approval',
        'signal',
        'time',
        'slot',
      ]),
    )
    .option('--reason <reason>', 'with this reason')
    .option('--text <text>', 'whose error or note has this text')
    .option('--roots', 'only those that no run has started')
    .option('--since <duration>', 'started within, as in 2h')
    .option('--limit <count>', 'how many (default: 50)')
    .option('--cursor <cursor>', 'the page after, as the last page said')
    .option('-q, --quiet', 'ids only')
    .option('--counts', 'how many there are of each status')

  reading(
    command(
      'show <run>',
      'all that is known of a run, and why it does not run',
      () => import('./commands/show.ts'),
    ),
  ).option('--full', 'whole values, not their beginnings')

  reading(
    command(
      'watch [run]',
      'follow a run, or all of them, as they change',
      () => import('./commands/watch.ts'),
    ),
  ).option('--all', 'every run')

  reading(
    command(
      'logs <run>',
      'what the attempts of a run have written',
      () => import('./commands/logs.ts'),
    ),
  )
    .option('--attempt <number>', 'this attempt alone')
    .option('--follow', 'go on as more is written, until the run has ended')

  acting(command('cancel <run>', 'cancel a run', () => import('./commands/cancel.ts'))).option(
    '--reason <text>',
    'why',
  )
  acting(command('pause <run>', 'pause a run', () => import('./commands/pause.ts'))).option(
    '--reason <text>',
    'why',
  )
  acting(command('resume <run>', 'resume a paused run', () => import('./commands/resume.ts')))
  acting(
    command(
      'retry <run>',
      'start an ended run again, as a new run',
      () => import('./commands/retry.ts'),
    ),
  )
    .option('--from <step>', 'keep what is recorded before this step')
    .option('--to-version <version>', 'on this version')
  acting(
    command(
      'hand-back <run>',
      'take a run from its holder, so that another can claim it',
      () => import('./commands/hand-back.ts'),
    ),
  ).option('--reason <text>', 'why')
  acting(
    command('signal <run> <name>', 'send a signal to a run', () => import('./commands/signal.ts')),
  )
    .option('--payload <json>', 'JSON, @file, or - for stdin')
    .option('--id <id>', 'the sender’s own id, by which a repeat is dropped')
  acting(
    command(
      'approve [approval]',
      'decide an approval; without one, list those that wait',
      () => import('./commands/approve.ts'),
    ),
  )
    .option('--yes', 'approve')
    .option('--deny', 'deny')
    .option('--by <name>', 'who decides (default: this user)')
    .option('--reason <text>', 'why')
    .option('--payload <json>', 'JSON, @file, or - for stdin')
    .option('--run <run>', 'list those of this run')

  program.commandsGroup('Operations:')
  acting(
    command(
      'schedules [action] [name]',
      'list (default), show, create, update, pause, resume, run-now or delete schedules',
      () => import('./commands/schedules.ts'),
    ),
  )
    .option('--cron <expression>', "when it fires, as in '0 3 * * *'")
    .option('--zone <zone>', 'time zone of the expression (default: UTC)')
    .option('--workflow <name>', 'what it starts')
    .option('--to-version <version>', 'version of the workflow (default: the current one)')
    .option('--input <json>', 'input of its runs: JSON, @file, or - for stdin')
    .option('--owner <owner>', 'whose runs they are')
    .option('--queue <queue>', 'queue')
    .option('--priority <number>', '-100 to 100, higher first')
    .option('--missed <policy>', 'ticks that nobody could fire in time: skip, one (default) or all')
    .option(
      '--overlap <policy>',
      'while a run of it is active: allow (default), skip, cancel_running or queue',
    )
    .option('--paused', 'create it paused')
    .option('--reason <text>', 'why it is paused')
  acting(
    command(
      'triggers [action] [name]',
      'list (default), show, set, try, pause, resume or delete triggers, which start runs by webhooks',
      () => import('./commands/triggers.ts'),
    ),
  )
    .option('--spec <json>', 'what it takes and starts: JSON, @file, or - for stdin')
    .option('--payload <json>', 'with try: what a delivery brings: JSON, @file, or - for stdin')
    .option('--event <name>', 'with try: its event')
    .option('--reason <text>', 'why it is paused')
  reading(
    command(
      'executors',
      'executors, what they hold and when they renewed',
      () => import('./commands/executors.ts'),
    ),
  ).option('--clear <run>', 'say that what this run left there has been seen to')
  acting(
    command(
      'slots [key]',
      'limits, who holds them and who waits',
      () => import('./commands/slots.ts'),
    ),
  ).option(
    '--set <number>',
    'set an operator’s value, which beats the code’s; `code` goes back to the code’s',
  )
  reading(
    command(
      'spawns',
      'executors that were started because a queue waited, each with why',
      () => import('./commands/spawns.ts'),
    ),
  )
    .option('--limit <count>', 'how many (default: 50)')
    .option('--cursor <cursor>', 'the page after, as the last page said')
  reading(
    command(
      'queues [queue]',
      'what waits in queues, for how long, and which slots are free',
      () => import('./commands/queues.ts'),
    ),
  )
  reading(
    command(
      'notices',
      'what people are to see and nothing waits for, newest first',
      () => import('./commands/notices.ts'),
    ),
  )
    .option('--limit <count>', 'how many (default: 50)')
    .option('--cursor <cursor>', 'the page after, as the last page said')
  acting(
    command(
      'orders [order]',
      'orders that were set aside, and what becomes of one',
      () => import('./commands/orders.ts'),
    ),
  )
    .option('--retry', 'try it anew')
    .option('--drop', 'drop it: what it asked for does not happen')
  reading(
    command(
      'sinks',
      'where notices are sent, and how far each is behind',
      () => import('./commands/sinks.ts'),
    ),
  )
  acting(
    command(
      'deliveries [delivery]',
      'notices on their way to sinks, and what becomes of one',
      () => import('./commands/deliveries.ts'),
    ),
  )
    .option('--state <state>', 'due, sending, delivered, dead, dropped or void')
    .option('--limit <count>', 'how many (default: 50)')
    .option('--cursor <cursor>', 'the page after, as the last page said')
    .option('--retry', 'try it anew')
    .option('--drop', 'drop it: it is not sent')
  reading(
    command(
      'doctor',
      'look whether all is well, and say what mends what is not',
      () => import('./commands/doctor.ts'),
    ),
  )
    .option('--file <path>', 'SQLite file, with --after-restore')
    .option('--database <url>', 'PostgreSQL database instead, with --after-restore')
    .option('--databases <urls>', 'several as one store, with --after-restore')
    .option('--after-restore', 'raise the generation of a restored store')
  command(
    'config',
    'the configuration in force, with where each value comes from',
    () => import('./commands/config.ts'),
  ).option('--json', 'print JSON')
  command(
    'sim [arguments...]',
    'the simulator, in a checkout of the repository',
    () => import('./commands/sim.ts'),
  ).allowUnknownOption()

  return program
}
