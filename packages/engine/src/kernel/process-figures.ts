// Figures of the process itself, under the names that all programs have for them.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Family } from './meters.ts'
import { gauge } from './meters.ts'

const NANO = 1e9

/** Begins to watch the event loop; `read` gives its delays since the last read. */
export const watchProcess = (): { read(): Family[]; stop(): void } => {
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  const began = Date.now() / 1_000 - process.uptime()
  return {
    read() {
      const { user, system } = process.cpuUsage()
      const quantiles = [0.5, 0.99, 1].map((quantile) => ({
        labels: { quantile: String(quantile) },
        // nothing was sampled since the last read
        value: delay.count === 0 ? 0 : delay.percentile(quantile * 100) / NANO,
      }))
      delay.reset()
      return [
        {
          name: 'process_cpu_seconds_total',
          help: 'CPU time of the server’s process.',
          type: 'counter',
          samples: [{ labels: {}, value: (user + system) / 1e6 }],
        },
        gauge('process_resident_memory_bytes', 'Memory of the server’s process.', [
          { labels: {}, value: process.memoryUsage.rss() },
        ]),
        gauge('process_start_time_seconds', 'When the server’s process began.', [
          { labels: {}, value: began },
        ]),
        gauge(
          'leasehold_event_loop_delay_seconds',
          'Delay of the event loop since the last scrape; quantile 1 is the longest.',
          quantiles,
        ),
      ]
    },
    stop: () => void delay.disable(),
  }
}
