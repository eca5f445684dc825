// Which addresses are public. What is sent to a name that somebody configured must not reach what stands beside the server.
import { BlockList, isIP } from 'node:net'

/** Of this machine, of a network of one's own, of many at once, for examples, or of another kind wrapped up. */
const V4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const

/** Of those that are routed: what carries an address of the other kind, and what is for examples. */
const V6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const

const kept = new BlockList()
for (const [net, bits] of V4) kept.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of V6) kept.addSubnet(net, bits, 'ipv6')
const routed = new BlockList()
routed.addSubnet('2000::', 3, 'ipv6')

/** Whether this address is one that anybody on the internet can reach, and nobody's own. */
export const isPublic = (address: string): boolean => {
  const kind = isIP(address)
  if (kind === 4) return !kept.check(address, 'ipv4')
  // `::1`, `fe80::`, `fc00::`, `::ffff:10.0.0.1` and the like are outside of what is routed
  return kind === 6 && routed.check(address, 'ipv6') && !kept.check(address, 'ipv6')
}
