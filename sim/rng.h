/*
 * Rng: one small random stream (SplitMix64), one per GPU and workload.
 *
 * A stream is one word of state, so it lives in the flat world and goes on after a restart exactly
 * where it was. Seeded from the seed and a name, never from the clock.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* FNV-1a: names to numbers, the same on every machine. */
static inline uint64_t rng_hash(uint64_t seed, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u ^ seed;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

static inline struct rng rng_seeded(uint64_t seed, const char *name)
{
    struct rng r = { rng_hash(seed, name) };

    rng_next(&r); /* FNV leaves neighbours alike; one round mixes them */
    return r;
}

/* Uniform in [0, 1). */
static inline double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1.0p-53;
}

/* Uniform in [low, high). */
static inline double rng_between(struct rng *r, double low, double high)
{
    return low + (high - low) * rng_unit(r);
}

#endif
