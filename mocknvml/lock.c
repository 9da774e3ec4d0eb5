/*
 * Lock: see lock.h.
 *
 * A reader counts himself in at one of several places, chosen by his thread, and looks whether somebody
 * changes the state; who changes it says so and then waits until all places are empty. Both in this order,
 * so at least one of them sees the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/lock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "mocknvml/library.h"

enum { PLACES = 16, LINE_BYTES = 64, YIELDS = 100, PATIENCE_NS = 50000 };

static struct {
    _Alignas(LINE_BYTES) atomic_uint readers;
} places[PLACES];

static _Alignas(LINE_BYTES) atomic_bool changing;
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER; /* held by who changes the state */

/* Threads' own blocks lie far apart; their addresses are spread over the places. */
static unsigned int own_place(void)
{
    return (unsigned int)(((uint64_t)(uintptr_t)pthread_self() >> 6) *
                              UINT64_C(0x9e3779b97f4a7c15) >>
                          60) %
           PLACES;
}

unsigned int lock_shared(void)
{
    unsigned int place = own_place();

    for (;;) {
        atomic_fetch_add(&places[place].readers, 1);
        if (!atomic_load(&changing))
            return place;
        atomic_fetch_sub(&places[place].readers, 1);
        pthread_mutex_lock(&change); /* until the change is done */
        pthread_mutex_unlock(&change);
    }
}

void unlock_shared(unsigned int place)
{
    atomic_fetch_sub(&places[place].readers, 1);
}

static void wait_empty(atomic_uint *readers)
{
    for (int i = 0; atomic_load(readers); i++)
        if (i < YIELDS)
            sched_yield();
        else
            nanosleep(&(struct timespec){ .tv_nsec = PATIENCE_NS }, NULL);
}

void lock_alone(void)
{
    pthread_mutex_lock(&change);
    atomic_store(&changing, true);
    for (int i = 0; i < PLACES; i++)
        wait_empty(&places[i].readers);
}

void unlock_alone(void)
{
    atomic_store(&changing, false);
    pthread_mutex_unlock(&change);
}

/* --- fork ------------------------------------------------------------------------------------ */

static void before_fork(void)
{
    pthread_mutex_lock(&change);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&change);
}

static void in_child(void)
{
    for (int i = 0; i < PLACES; i++)
        atomic_store(&places[i].readers, 0);
    pthread_mutex_unlock(&change);
    events_after_fork();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}
