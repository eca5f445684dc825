// A server as clients and executors name it. What could be in no request is refused here, with what it is: the platform
// would say of it that no server answers, or nothing that anybody understands.
import { LeaseholdError } from '../kernel/errors.ts'
import { shown } from '../kernel/json.ts'
import { mustName } from '../model/definition.ts'
import type { Peer } from './call.ts'

const no = (message: string): LeaseholdError => new LeaseholdError('invalid_config', message)

/** Throws `invalid_config` where no request could be sent to this address with this token. */
export const mustReach = ({ url, token }: Pick<Peer, 'url' | 'token'>): void => {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw no(`the server's url is ${shown(url)}; expected an address such as http://127.0.0.1:7400`)
  const { username, password } = new URL(url)
  if (username !== '' || password !== '')
    throw no(
      "the server's url has a user or a password, which no request can carry; leave it out, and give a token in its place",
    )
  if (token !== null && !/^[\x20-\x7e\xa0-\xff]+$/.test(token))
    throw no(
      'the token has a character that no header can carry; expected printable ASCII, as the server has it',
    )
}

/** The peer as given; throws `invalid_config` or `invalid_request` where its address, token or actor cannot be used. */
export const peerOf = (given: Peer): Peer => {
  mustReach(given)
  if (given.actor !== null) mustName(given.actor, 'the actor')
  return given
}
