// A signed claim (JWT, RS256): how an app says to a forge who it is.
import { createSign } from 'node:crypto'

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs these claims with an RSA key in PEM. */
export const signedClaims = (claims: object, privateKey: string): string => {
  const text = `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}`
  return `${text}.${createSign('RSA-SHA256').update(text).sign(privateKey, 'base64url')}`
}
