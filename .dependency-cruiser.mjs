// Which folder of the engine may import which: one straight line, types counted, no cycles.
// `types` are folders of which only types may be taken.
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

/** A rule that lets `folder` reach itself and what it may, and nothing else of ours. */
const direction = (folder) => {
  const reach = may[folder].map((one) => (typeof one === 'string' ? one : one.types))
  return {
    name: `${folder}-direction`,
    comment: `${folder} may import ${reach.join(', ') || 'nothing of ours'}`,
    severity: 'error',
    from: {
      path: `${source}/${folder}/`,
      pathNot: [
        tests,
        ...(folder === 'cli'
          ? [`${source}/cli/(commands/)?(serve|dev|work|migrate|doctor|load-workflows)\\.ts$`]
          : []),
      ],
    },
    to: { path: '^packages/', pathNot: `${source}/(${[folder, ...reach].join('|')})/` },
  }
}

const typesOnly = (folder) =>
  may[folder]
    .filter((one) => typeof one === 'object')
    .map(({ types }) => ({
      name: `${folder}-takes-types-of-${types}`,
      severity: 'error',
      from: { path: `${source}/${folder}/`, pathNot: tests },
      to: { path: `${source}/${types}/`, dependencyTypesNot: ['type-only'] },
    }))

const rule = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to })

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...folders.map(direction),
    ...folders.flatMap(typesOnly),
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
          `${source}/(entry/|testing/|orchestrator/(main|open|user-transaction)\\.ts$|store/(sqlite|postgres))`,
        ],
      },
      { path: `${source}/store/(sqlite|postgres)\\.ts$` },
    ),
    rule(
      'serving-commands',
      'serve, dev and work start the parts; migrate reaches the migrations',
      { path: `${source}/cli/(commands/)?(serve|dev|work)\\.ts$` },
      {
        path: '^packages/',
        pathNot: `${source}/(kernel|model|client|protocol|cli|orchestrator|executor)/`,
      },
    ),
    rule(
      'migrate-command',
      'migrate reaches the migrations and no other part of the store',
      { path: `${source}/cli/(commands/)?migrate\\.ts$` },
      {
        path: '^packages/',
        pathNot: `${source}/((kernel|client|protocol|cli)/|orchestrator/main\\.ts$|store/migrate\\.ts$)`,
      },
    ),
    rule(
      'entry-is-a-front-door',
      'nothing inside imports an entry point',
      { path: '^packages/engine/src/', pathNot: [tests, `${source}/entry/`] },
      { path: `${source}/entry/` },
    ),
    rule(
      'cli-is-a-program',
      'nothing imports the command line',
      { path: '^packages/', pathNot: [tests, `${source}/cli/`] },
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
      { path: '^packages/engine/', pathNot: `${source}/(protocol|client|entry/client\\.ts)` },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(dist|coverage)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.base.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'import', 'node', 'default'],
      extensions: ['.ts', '.mjs', '.js', '.json'],
    },
  },
}
