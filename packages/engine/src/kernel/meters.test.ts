import { expect, test } from 'vitest'
import { SERIES_MAX, counter, expose, gauge, histogram } from './meters.ts'

test('OPS-05 a counter, a gauge and a histogram are written as Prometheus reads them', () => {
  const runs = counter('runs_total', 'Runs.')
  runs.add({ how: 'done' })
  runs.add({ how: 'done' }, 2)
  const took = histogram('took_seconds', 'How long.', [0.1, 1])
  for (const seconds of [0.05, 0.1, 0.5, 7]) took.observe({}, seconds)
  const depth = gauge('depth', 'With \\ and\na line.', [{ labels: { queue: 'a"\\\n' }, value: 3 }])
  expect(expose([runs.family(), took.family(), depth])).toBe(
    `# HELP runs_total Runs.
# TYPE runs_total counter
runs_total{how="done"} 3
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{le="0.1"} 2
took_seconds_bucket{le="1"} 3
took_seconds_bucket{le="+Inf"} 4
took_seconds_sum 7.65
took_seconds_count 4
# HELP depth With \\\\ and\\na line.
# TYPE depth gauge
depth{queue="a\\"\\\\\\n"} 3
`,
  )
})

test('OPS-05 a figure has no more series than its bound, and loses nothing by it', () => {
  const named = counter('named_total', 'By names that users choose.')
  for (let i = 0; i < SERIES_MAX * 3; i++) named.add({ name: `n${i}` })
  const { samples } = named.family()
  expect(samples).toHaveLength(SERIES_MAX + 1)
  expect(samples.at(-1)).toEqual({ labels: { name: 'other' }, value: SERIES_MAX * 2 })
  expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe(SERIES_MAX * 3)
})
