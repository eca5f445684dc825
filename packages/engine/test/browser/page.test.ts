// The page in a real browser, on a real server with a real executor.
import { chromium } from 'playwright-core'
import type { Page } from 'playwright-core'
import { expect, inject, onTestFinished, test } from 'vitest'
import { folder, runThat, serve, work } from '../e2e/processes.ts'
import { NO_BROWSER } from './browser.ts'

/** A page of a new browser, and what its console called an error. */
const opened = async (): Promise<{ page: Page; errors: string[] }> => {
  const executablePath = inject('browser')
  if (executablePath === null) throw new Error(NO_BROWSER)
  const browser = await chromium.launch({
    executablePath,
    // root may start it in a container only so; what it says to the outside of its own accord is not wanted
    args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update'],
  })
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  const errors: string[] = []
  page.on('pageerror', ({ message }) => errors.push(message))
  page.on('console', (said) => {
    if (said.type() === 'error' || said.type() === 'warning') errors.push(said.text())
  })
  return { page, errors }
}

test('UI-01 UI-06 the page teaches the first command, lists runs, and shows a run’s end without being loaded again', async () => {
  const cwd = folder()
  const { url, client } = await serve(cwd)
  await work(cwd, url)
  const { page, errors } = await opened()
  await page.goto(url)
  await page.getByText('npx leasehold start').waitFor()

  const { id } = await client.start('waits', null)
  const row = page.getByRole('row', { name: id })
  await row.getByText('Waiting').waitFor()
  await row.getByText('on a signal').waitFor()
  expect(await page.getByText('No runs yet').isVisible()).toBe(false)
  await page.evaluate("document.body.dataset.loaded = 'once'")
  await page.getByText('Live', { exact: true }).waitFor()
  await client.signal(id, 'go')
  await row.getByText('Succeeded').waitFor()

  expect(await page.evaluate('document.body.dataset.loaded')).toBe('once')
  expect(errors).toEqual([])
})

test('UI-06 the page says so when its server is gone, and goes on by itself when it is back', async () => {
  const cwd = folder()
  const first = await serve(cwd)
  const { page } = await opened()
  await page.goto(first.url)
  await page.getByText('No runs yet').waitFor()
  first.process.kill('SIGTERM')
  await first.process.ended
  await page.getByText(/^Not up to date: .*Trying again\.$/).waitFor()

  const again = await serve(cwd, {}, new URL(first.url).port)
  await work(cwd, again.url)
  const started = await again.client.start('greet', { name: 'Ann' })
  await runThat(again.client, started.id, ({ run }) => run.status === 'succeeded')
  await page.getByRole('row', { name: started.id }).getByText('Succeeded').waitFor()
  expect(await page.getByRole('status').textContent()).toBe('')
})
