// The page: fetch, draw, and draw again whenever the server says that something changed.
import { countByStatus, readRuns, remark, span, type Run } from './runs.ts'
import { statusWords } from './words/status.ts'

const pollMs = 2000

const at = (id: string): HTMLElement => {
  const found = document.getElementById(id)
  if (!found) throw new Error(`the page has no #${id}`)
  return found
}

function element(tag: string, text = '', attributes: Record<string, string> = {}): HTMLElement {
  const made = document.createElement(tag)
  made.textContent = text
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  return made
}

/** Writes only what changed, so that screen readers and selections are left in peace. */
function fill(parent: HTMLElement, children: HTMLElement[]): void {
  const next = element(parent.tagName)
  next.append(...children)
  if (next.innerHTML !== parent.innerHTML) parent.replaceChildren(...children)
}

function countCard([status, count]: ReturnType<typeof countByStatus>[number]): HTMLElement {
  const { label, tone } = statusWords[status]
  const card = element('li', '', { class: 'count', 'data-tone': tone })
  card.append(element('strong', String(count)), element('span', label))
  return card
}

function runRow(run: Run, now: number): HTMLElement {
  const { label, tone, mark } = statusWords[run.status]
  const status = element('td')
  const badge = element('span', '', { class: 'badge', 'data-tone': tone })
  badge.append(element('span', mark, { 'aria-hidden': 'true' }), ` ${label}`)
  status.append(badge)
  const id = element('th', '', { scope: 'row' })
  id.append(element('code', run.id))
  const took = element('td', span((run.endedAt ?? now) - run.createdAt))
  took.title = new Date(run.createdAt).toLocaleString()
  const row = element('tr')
  row.append(id, element('td', run.workflow), status, element('td', remark(run)), took)
  return row
}

function draw(runs: Run[]): void {
  fill(at('counts'), countByStatus(runs).map(countCard))
  fill(
    at('rows'),
    runs.map((run) => runRow(run, Date.now())),
  )
  at('empty').hidden = runs.length > 0
  at('list').hidden = runs.length === 0
}

let asking: Promise<void> | undefined
let askAgain = false

/** One request at a time: what changes while it is under way is asked for once more after it. */
function refresh(): void {
  if (asking) {
    askAgain = true
    return
  }
  asking = ask().finally(() => {
    asking = undefined
    if (!askAgain) return
    askAgain = false
    refresh()
  })
}

async function ask(): Promise<void> {
  try {
    const answer = await fetch('/v1/runs?limit=50', { headers: { accept: 'application/json' } })
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`)
    draw(readRuns(await answer.json()))
    say('')
  } catch (error) {
    say(`Not up to date: ${error instanceof Error ? error.message : String(error)}. Trying again.`)
  }
}

const say = (text: string): void => {
  if (at('notice').textContent !== text) at('notice').textContent = text
}

/** Follows the server's events; while they fail, asks every two seconds instead. */
function follow(): void {
  let poll: ReturnType<typeof setInterval> | undefined
  const events = new EventSource('/v1/events')
  const live = (yes: boolean): void => {
    at('live').textContent = yes ? 'Live' : 'Every 2 s'
    clearInterval(poll)
    poll = yes ? undefined : setInterval(refresh, pollMs)
  }
  live(false)
  events.addEventListener('open', () => {
    live(true)
    refresh()
  })
  events.addEventListener('message', refresh)
  events.addEventListener('run', refresh)
  events.addEventListener('error', () => {
    live(false)
    if (events.readyState !== EventSource.CLOSED) return
    setTimeout(() => {
      clearInterval(poll)
      follow()
    }, 15_000)
  })
}

refresh()
follow()
