// Which cases are of one database alone, and why. They run on one also where all others run on several: none is left out.

const SMALL =
  'a limit of less than there are databases is refused on several, which run-shards.test.ts asks'
const BY_HAND =
  'it calls a transition by its own hand, where a server asks the database of the owner that is named'
const OWN_IDS = 'it makes ids by its own hand, which on several carry the mark of their database'
const OWN_NUMBERS =
  'a claim has numbers of its own on each database, and one of nothing is asked of none'
const ONE_AT_A_TIME =
  'a claim of one run waits at one database at a time, and looks at the next after a poll'
const NO_DIGEST = 'a digest is over the runs of all databases: the list is asked for instead'
const COUNTED = 'it counts rows of one database'
const EACH_TELLS = 'a session is on each database, and each tells that it was lost'

/** By file, the titles with the reason. */
export const ON_ONE: Readonly<Record<string, readonly (readonly [title: string, why: string])[]>> =
  {
    'rail-deliveries': [
      [
        'RAIL-02 those of one run go in their order; one that is refused holds up those behind it, one that is dead does not',
        EACH_TELLS,
      ],
    ],
    'rail-schedules': [
      [
        'RAIL-16 a tick starts its run when it is due, once, under an id that follows from both',
        BY_HAND,
      ],
    ],
    'rail-triggers': [
      [
        'RAIL-15 is claimed with its run; the same again answers that run, and starts nothing',
        BY_HAND,
      ],
      [
        'RAIL-15 B078 of twenty that bring the same at once one starts its run, and all are told of it',
        BY_HAND,
      ],
      [
        'RAIL-15 B079 deliveries that come together are taken each for itself: one that is refused keeps no other',
        BY_HAND,
      ],
      [
        'RAIL-15 what was refused is kept with its reason, and taken when it comes again and can be',
        BY_HAND,
      ],
      ['RAIL-15 whose key has a run already joins it, with the same input or another', BY_HAND],
      ['RAIL-15 is known for three days, and forgotten after', BY_HAND],
      ['RAIL-15 is sent to the run of the key, once for each delivery', BY_HAND],
      ['RAIL-15 starts the run where none has the key, of however many that come at once', BY_HAND],
      ['RAIL-15 to nobody, or to a run that has ended, is ignored and says so', BY_HAND],
      [
        'RAIL-15 is set once and again, and what arrived stays known when it is taken away',
        BY_HAND,
      ],
      ['RAIL-15 whose row somebody has spoilt takes nothing and is shown', BY_HAND],
    ],
    'run-claims': [
      ['RUN-05 makes attempt n+1 the holder and says all that driving needs', OWN_NUMBERS],
      [
        'RUN-29 what a claim makes due takes its place before what stands in line, and waits for a slot that it does not hold',
        SMALL,
      ],
      [
        'B131 one run among hundreds of idle sessions is looked for by one of them, a line by as many as it needs',
        COUNTED,
      ],
      ['RUN-10 a lower number is refused and changes nothing', OWN_NUMBERS],
    ],
    'run-family': [
      [
        'RUN-34 ends the run continued and starts its successor in one transaction, with what it keeps',
        OWN_IDS,
      ],
      ['RUN-34 the successor inherits the slots, also at limit 1, unless its keys differ', SMALL],
      [
        'RUN-33 starts the handler in the transaction that ends the run other than by success',
        OWN_IDS,
      ],
      ['RUN-33 a handler that cannot be started is a notice, and the run ends all the same', SMALL],
      ['SLOT-03 a handler with limits of its own lines up for them', SMALL],
    ],
    'run-leases': [
      ['RUN-09 a waiting claim is answered by it', ONE_AT_A_TIME],
      [
        'RUN-10 a digest that agrees asks for nothing; one that differs asks for the list',
        NO_DIGEST,
      ],
      [
        'RUN-10 only runs of claims that were received count, both in the digest and in the list',
        NO_DIGEST,
      ],
    ],
    'run-starts': [
      [
        'RUN-18 the same key and equal input is the same run, whatever the order of its members',
        COUNTED,
      ],
      ['RUN-18 a repeat is answered also where the limit is full and rejects', SMALL],
      [
        'RUN-20 a terminal run becomes a new one, linked, without its key, from the beginning',
        OWN_IDS,
      ],
      ['RUN-20 from a named step: the entries before it are copied', OWN_IDS],
      ['RUN-20 a repeat is answered with the run that it made', OWN_IDS],
      [
        'RUN-23 a version that is registered with another definition takes it, and says so with both values',
        SMALL,
      ],
      ['SLOT-01 more than two keys of its own are refused at registration', SMALL],
    ],
    'slot-limits': [
      [
        'SLOT-01 an owner has ten by default; more wait in line and follow as slots are freed',
        SMALL,
      ],
      [
        'SLOT-01 units are of the limit that declares them: each of two by its own, and one of the owner’s',
        SMALL,
      ],
      [
        'SLOT-02 an owner’s slot is kept while its run sleeps, and free as soon as it is canceled',
        SMALL,
      ],
      [
        'SLOT-02 a paused run keeps its owner’s slot and frees its key, and lines up when resumed',
        SMALL,
      ],
      ['SLOT-04 a parent that waits for its child never deadlocks the two at limit 1', SMALL],
      ['SLOT-07 fair between owners: one with a long queue does not keep others waiting', SMALL],
      [
        'SLOT-07 B127 L4 measured: of twenty owners, one of which floods, each is served alike, and who comes new waits for two rounds at most',
        SMALL,
      ],
      ['SLOT-07 an owner is served by its weight', SMALL],
      ['SLOT-07 an owner that used much before owes nothing once it has nothing in line', SMALL],
    ],
  }

/** Whether a test, which its suites and title name, is of one database alone. */
export const onOneDatabase = (file: string, name: string): boolean => {
  const of = file.slice(file.lastIndexOf('/') + 1).replace(/\.test\.ts$/, '')
  return (ON_ONE[of] ?? []).some(([title]) => name.endsWith(title))
}
