import { expect, test } from 'vitest'
import { findBrowser } from './browser.ts'

const there = (name: string) => (asked: string) =>
  asked === name ? `/usr/bin/${asked}` : undefined

test('any of the usual names is found, also where Chrome is an application', () => {
  expect(findBrowser(undefined, there('google-chrome'), () => false)).toBe('/usr/bin/google-chrome')
  const none = (): undefined => undefined
  expect(findBrowser('', none, () => true)).toContain('/Applications/')
  expect(findBrowser(undefined, none, () => false)).toBeUndefined()
})

test('a browser that is named is taken, and must be there', () => {
  expect(findBrowser('/opt/browser', there('chromium'), () => true)).toBe('/opt/browser')
  expect(() => findBrowser('/opt/browser', there('chromium'), () => false)).toThrow('no program')
})
