/*
 * Lock: many read the library's state at once, one changes it alone.
 *
 * Readers on different processors do not touch the same memory, so that threads do not slow each other down. A
 * change waits until they have left; it must be short and do no I/O.
 *
 * A child after fork finds the lock free and the state whole: the fork waits for a change that is under way,
 * but not for readers, who are not in the child.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_LOCK_H
#define MOCKNVML_LOCK_H

/* Returns what unlock_shared wants back. Not to be taken twice by one thread. */
unsigned int lock_shared(void);
void unlock_shared(unsigned int place);

void lock_alone(void);
void unlock_alone(void);

#endif
