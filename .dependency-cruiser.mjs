// Which folder of the engine may import which: one straight line, types counted, no cycles. ARCHITECTURE.md has the same
// table for people.
const source = '^packages/engine/src'
const tests = '(\\.test\\.ts$|/test/)'

const may = {
  kernel: [],
  model: ['kernel'],
  store: ['kernel', 'model'],
  transitions: ['kernel', 'model', 'store'],
  queries: ['kernel', 'model', 'store'],
  maintenance: ['kernel', 'model', 'store', 'transitions', 'queries'],
  protocol: ['kernel', 'model'],
  orchestrator: ['kernel', 'model', 'store', 'transitions', 'queries', 'maintenance', 'protocol'],
  client: ['kernel', 'model', 'protocol'],
  executor: ['kernel', 'model', 'protocol', 'client'],
  cli: ['kernel', 'model', 'client', 'protocol'],
}
const folders = Object.keys(may)

// What some files of the command line may reach beside that: those that start the parts, or that do something to a store
// while nobody serves it.
const cliMore = [
  {
    name: 'cli-starts',
    files: '(idling|cluster-launcher|commands/(serve|dev|work|attempt|spawn))',
    more: 'orchestrator/|executor/',
  },
  { name: 'cli-mends', files: 'commands/(migrate|doctor)', more: 'orchestrator/main\\.ts$' },
  { name: 'cli-loads', files: 'load-workflows', more: 'executor/authoring/context\\.ts$' },
]
const cliFile = ({ files }) => `${source}/cli/${files}\\.ts$`

/** A rule that lets `folder` reach itself and what it may, and nothing else of ours. */
const direction = (folder) => ({
  name: `${folder}-direction`,
  comment: `${folder} may import ${may[folder].join(', ') || 'nothing of ours'}`,
  severity: 'error',
  from: {
    path: `${source}/${folder}/`,
    pathNot: [tests, ...(folder === 'cli' ? cliMore.map(cliFile) : [])],
  },
  to: { path: '^packages/', pathNot: `${source}/(${[folder, ...may[folder]].join('|')})/` },
})

const rule = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to })

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...folders.map(direction),
    rule('no-circular', 'a cycle has no bottom', {}, { circular: true }),
    rule('resolvable', 'what is imported is there', {}, { couldNotResolve: true }),
    rule(
      'pure',
      'model decides: it neither reads nor waits',
      { path: `${source}/model/`, pathNot: tests },
      { dependencyTypes: ['core', 'npm'] },
    ),
    rule(
      'kernel-alone',
      'kernel takes nothing but what Node has',
      { path: `${source}/kernel/`, pathNot: tests },
      { dependencyTypes: ['npm'] },
    ),
    rule(
      'transitions-touch-the-store-only',
      'no files, sockets or timers inside a transaction',
      { path: `${source}/(transitions|queries)/`, pathNot: tests },
      { dependencyTypes: ['core', 'npm'] },
    ),
    rule(
      'maintenance-by-transitions',
      'loops mend by ordinary transitions',
      { path: `${source}/maintenance/`, pathNot: tests },
      { path: `${source}/store/tables/` },
    ),
    rule(
      'drivers-at-the-edge',
      'a database is chosen where the parts are put together',
      {
        path: '^packages/engine/src/',
        pathNot: [
          tests,
          `${source}/(entry/|testing/|orchestrator/(main|open|open-postgres|user-transaction)\\.ts$|store/(sqlite|postgres))`,
        ],
      },
      { path: `${source}/store/(sqlite|postgres)\\.ts$` },
    ),
    ...cliMore.map((one) =>
      rule(
        one.name,
        'these commands reach what they start or mend, and no other part of the engine',
        { path: cliFile(one) },
        { path: '^packages/', pathNot: `${source}/((cli|${may.cli.join('|')})/|${one.more})` },
      ),
    ),
    rule(
      'testing-is-for-users',
      'nothing but its entry point and tests imports the engine for tests',
      { path: '^packages/', pathNot: [tests, `${source}/(testing|entry)/`] },
      { path: `${source}/testing/` },
    ),
    rule(
      'support-below-tests',
      'what tests share imports no test and no other level of them',
      { path: '^packages/engine/test/support/' },
      { path: '(\\.test\\.ts$|^packages/engine/test/)', pathNot: '^packages/engine/test/support/' },
    ),
    rule(
      'entry-is-a-front-door',
      'nothing inside imports an entry point',
      { path: '^packages/engine/src/', pathNot: [tests, `${source}/entry/`] },
      { path: `${source}/entry/` },
    ),
    rule(
      'programs-are-started',
      'nothing imports a program: it is a process or a thread of its own',
      { path: '^packages/', pathNot: tests },
      { path: `${source}/programs/` },
    ),
    rule(
      'embedded-is-all-of-it',
      'the engine in one process is put together above its parts',
      { path: '^packages/engine/src/', pathNot: [tests, `${source}/(entry|embedded)/`] },
      { path: `${source}/embedded/` },
    ),
    rule(
      'embedded-direction',
      'and is no part of the command line',
      { path: `${source}/embedded/` },
      { path: `${source}/(cli|testing|entry|programs)/` },
    ),
    rule(
      'cli-is-a-program',
      'nothing but programs beside it imports the command line',
      { path: '^packages/', pathNot: [tests, `${source}/(cli|programs)/`] },
      { path: `${source}/cli/` },
    ),
    rule(
      'no-test-in-the-product',
      'the product does not import its tests',
      { path: '^packages/[^/]+/src/', pathNot: tests },
      { path: tests },
    ),
    rule(
      'dashboard-through-the-protocol',
      'the page knows the protocol and the client',
      { path: '^packages/dashboard/' },
      { path: '^packages/engine/', pathNot: `${source}/(protocol/|client/|entry/client\\.ts$)` },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '((^|/)(dist|coverage)/|/bench/peers/)' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'node', 'default'],
      extensions: ['.ts', '.mjs', '.js', '.json'],
    },
  },
}
