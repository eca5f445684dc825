// The small pieces that many shapes are made of: ids, names, instants, JSON values.
import * as z from 'zod'
import { AROUND, DEPTH_MAX, jsonFault } from '../kernel/json.ts'
import { INT_MAX } from '../kernel/numbers.ts'
import { runMachine, waitKinds } from '../model/run.ts'

const LONE_OR_CONTROL =
  /[\u0000-\u001f\u007f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

/** A text that can name something. */
export const name = z
  .string()
  .min(1)
  .max(200)
  .refine((text) => !LONE_OR_CONTROL.test(text), 'has control characters or half of a character')

/** An id as it stands in a path; ids of approvals are a run's and a key's together. */
export const id = z.string().min(1).max(2_300)

export const instant = z
  .number()
  .int()
  // what no calendar has is no instant, and could not be shown as one
  .min(-8.64e15)
  .max(8.64e15)
  .describe('Milliseconds since the epoch, on the store’s clock')
export const ms = z.number().int().min(0).max(1e15).describe('Milliseconds')
export const whole = z.number().int()
/** A whole number that a column keeps. */
export const int = whole.min(-INT_MAX).max(INT_MAX)
export const json = z.unknown().describe('Any JSON value')

/** JSON as text, as executors send it. It is kept as it came, so everybody who reads it later relies on its being JSON. */
export const someJson = z
  .string()
  .superRefine((text, context) => {
    const fault = jsonFault(text, DEPTH_MAX + AROUND)
    if (fault !== null) context.addIssue({ code: 'custom', message: fault })
  })
  .describe('JSON text')
export const jsonText = someJson.nullable()

/** A member that may be left out, or be null. */
export const maybe = <T extends z.ZodType>(shape: T) => shape.nullable().exactOptional()

export const status = z.enum(runMachine.states)
export const waitOn = z.enum(waitKinds)

/** Numbers in a query string. */
export const inQuery = {
  whole: (least: number, most: number) => z.coerce.number().int().min(least).max(most),
  instant: z.coerce.number().int(),
  flag: z.enum(['true', 'false']).transform((text) => text === 'true'),
  /** One or several, separated by commas. */
  list: <T extends z.ZodType<unknown, string>>(item: T) =>
    z.preprocess(
      (text) => (typeof text === 'string' ? text.split(',').filter((each) => each !== '') : text),
      z.array(item),
    ),
}
