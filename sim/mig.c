/*
 * Mig: GPU instances and compute instances. See mig.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/mig.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/gpu.h"
#include "sim/suggest.h"
#include "sim/text.h"
#include "sim/why.h"

enum { SLICES = 8 }; /* of memory */

/* --- grammar --------------------------------------------------------------------------------- */

static int bad_command(const char *text, struct why *why)
{
    return why_set(
        why, EINVAL,
        "'%s' is not a MIG command; allowed: create PROFILE [at SLICE], create-gi PROFILE [at "
        "SLICE], create-ci GI [SLICES [at SLICE]], destroy GI [CI]",
        text);
}

static int parse_create(const char *text, struct mig_command *c, struct why *why)
{
    char word[16], at[8], more;
    int n = sscanf(text, "%15s %15s %7s %9d %c", word, c->profile, at, &c->start, &more);

    c->verb = strcmp(word, "create") ? MIG_CREATE_GI : MIG_CREATE;
    if (n == 2) {
        c->start = -1;
        return 0;
    }
    return n == 4 && !strcmp(at, "at") && c->start >= 0 ? 0 : bad_command(text, why);
}

static int parse_numbers(const char *text, struct mig_command *c, struct why *why)
{
    char word[16], at[8], more;
    int second = -1,
        n = sscanf(text, "%15s %9d %9d %7s %9d %c", word, &c->gi, &second, at, &c->start, &more);
    bool placed = n == 5 && !strcmp(at, "at") && c->start >= 0;

    c->verb = strcmp(word, "destroy") ? MIG_CREATE_CI : MIG_DESTROY;
    if (n != 2 && n != 3 && !(placed && c->verb == MIG_CREATE_CI))
        return bad_command(text, why);
    if (c->gi < 0 || c->gi >= MIG_GIS_MAX || (n > 2 && (second < 0 || second > MIG_CIS_MAX)))
        return why_set(why, ERANGE,
                       "'%s': there are GPU instances 0 to %d, compute instances 0 to %d", text,
                       MIG_GIS_MAX - 1, MIG_CIS_MAX - 1);
    c->ci = second;
    c->slices = second < 0 ? 0 : second;
    return 0;
}

int mig_parse(const char *text, struct mig_command *c, struct why *why)
{
    *c = (struct mig_command){ .start = -1, .ci = -1 };
    if (!strncmp(text, "create ", 7) || !strncmp(text, "create-gi ", 10))
        return parse_create(text, c, why);
    if (!strncmp(text, "create-ci ", 10) || !strncmp(text, "destroy ", 8))
        return parse_numbers(text, c, why);
    return bad_command(text, why);
}

/* --- profiles -------------------------------------------------------------------------------- */

static const char *profile_name_at(const void *model, int i)
{
    const struct gpu_model *m = model;

    return i < m->mig.count ? m->mig.items[i].name : NULL;
}

static int find_profile(const struct gpu_model *m, const char *name, struct why *why)
{
    struct text hint = TEXT_INIT;
    int64_t id;
    bool number = parse_i64(name, &id) == 0;
    int r;

    for (int i = 0; i < m->mig.count; i++)
        if (number ? m->mig.items[i].id == id : !strcmp(m->mig.items[i].name, name))
            return i;
    suggest_add(&hint, name, profile_name_at, m);
    r = why_set(why, EINVAL, "'%s' is not a MIG profile of %s%s", name, m->name, text_str(&hint));
    text_release(&hint);
    return r;
}

/* --- placement ------------------------------------------------------------------------------- */

static unsigned taken_slices(const struct gpu *g, const struct gpu_model *m)
{
    unsigned taken = 0;

    for (int i = 0; i < MIG_GIS_MAX; i++)
        if (g->gis[i].used)
            taken |= ((1u << m->mig.items[g->gis[i].profile].size) - 1) << g->gis[i].start;
    return taken;
}

static int64_t taken_compute(const struct gpu *g, const struct gpu_model *m)
{
    int64_t taken = 0;

    for (int i = 0; i < MIG_GIS_MAX; i++)
        if (g->gis[i].used)
            taken += m->mig.items[g->gis[i].profile].slices;
    return taken;
}

static int same_profile(const struct gpu *g, int profile)
{
    int n = 0;

    for (int i = 0; i < MIG_GIS_MAX; i++)
        n += g->gis[i].used && g->gis[i].profile == profile;
    return n;
}

static int64_t most_compute(const struct gpu_model *m)
{
    int64_t most = 0;

    for (int i = 0; i < m->mig.count; i++)
        most = m->mig.items[i].slices > most ? m->mig.items[i].slices : most;
    return most;
}

/*
 * The first place that is free. Who has more memory than compute slices begins to look at the end, where the memory is that
 * no small instance could have: so 3g, 2g, 1g and 1g fit in any order.
 */
static int find_start(const struct gpu *g, const struct gpu_model *m, const struct mig_profile *p,
                      int wanted)
{
    unsigned taken = taken_slices(g, m), needed = (1u << p->size) - 1;
    bool from_end = p->size > p->slices;

    for (int i = 0; i < p->starts.count; i++) {
        int start = (int)p->starts.items[from_end ? p->starts.count - 1 - i : i];

        if ((wanted < 0 || wanted == start) && !(taken & needed << start) &&
            start + p->size <= SLICES)
            return start;
    }
    return -1;
}

/* Small instances have the high numbers: 7 slices 0; 4 and 3 from 1; 2 from 3; 1 from 7. */
static int first_number(const struct mig_profile *p)
{
    switch (p->slices) {
    case 1:
        return 7;
    case 2:
        return 3;
    case 3:
    case 4:
        return 1;
    default:
        return 0;
    }
}

static int free_number(const struct gpu *g, const struct mig_profile *p)
{
    for (int i = 0; i < MIG_GIS_MAX; i++) {
        int number = (first_number(p) + i) % MIG_GIS_MAX;

        if (!g->gis[number].used)
            return number;
    }
    return -1;
}

/* --- commands -------------------------------------------------------------------------------- */

static int create_gi(struct gpu *g, const struct gpu_model *m, const struct mig_command *c,
                     struct why *why)
{
    int profile = find_profile(m, c->profile, why), start, number;
    const struct mig_profile *p;

    if (profile < 0)
        return profile;
    p = &m->mig.items[profile];
    start = find_start(g, m, p, c->start);
    number = free_number(g, p);
    if (start < 0 || number < 0 || same_profile(g, profile) >= p->count ||
        taken_compute(g, m) + p->slices > most_compute(m))
        return why_set(why, ENOSPC, "there is no room for a %s%s", p->name,
                       c->start >= 0 ? " there" : "");
    g->gis[number] = (struct mig_gi){ .used = 1,
                                      .profile = (uint8_t)profile,
                                      .start = (uint8_t)start };
    return number;
}

/* How many compute slices of a GPU instance are free from `start` on. */
static int free_run(const struct mig_gi *instance, int slices, int start)
{
    int end = slices;

    for (int i = 0; i < MIG_CIS_MAX; i++) {
        const struct mig_ci *ci = &instance->cis[i];

        if (ci->slices && ci->start + ci->slices > start && ci->start < end)
            end = ci->start > start ? ci->start : start;
    }
    return end > start ? end - start : 0;
}

/* The first place of `wanted` slices, or (0) the one of the most: its start, with the slices that are free there. */
static int find_run(const struct mig_gi *instance, int slices, int wanted, int *found)
{
    int best = -1;

    *found = 0;
    for (int start = 0; start < slices; start++) {
        int run = free_run(instance, slices, start);

        if (run > *found) {
            *found = run;
            best = start;
        }
        if (wanted && run >= wanted)
            return start;
    }
    return best;
}

static int free_ci(const struct mig_gi *instance)
{
    for (int i = 0; i < MIG_CIS_MAX; i++)
        if (!instance->cis[i].slices)
            return i;
    return -1;
}

static int create_ci(struct gpu *g, const struct gpu_model *m, const struct mig_command *c, int gi,
                     struct why *why)
{
    struct mig_gi *instance = &g->gis[gi];
    int most, start, run, number;

    if (!instance->used)
        return why_set(why, ENOENT, "there is no GPU instance %d", gi);
    most = (int)m->mig.items[instance->profile].slices;
    number = free_ci(instance);
    start = find_run(instance, most, c->slices, &run);
    if (c->verb == MIG_CREATE_CI && c->start >= 0) {
        start = c->start;
        run = free_run(instance, most, start);
    }
    if (run < 1 || run < c->slices || number < 0)
        return why_set(why, ENOSPC, "GPU instance %d has %d compute slices left in one piece%s", gi,
                       run, c->verb == MIG_CREATE_CI && c->start >= 0 ? " there" : "");
    instance->cis[number] = (struct mig_ci){ (uint8_t)(c->slices ? c->slices : run),
                                             (uint8_t)start };
    return 0;
}

static int destroy(struct gpu *g, int gi, int ci, struct why *why)
{
    if (!g->gis[gi].used)
        return why_set(why, ENOENT, "there is no GPU instance %d", gi);
    if (ci < 0) {
        memset(&g->gis[gi], 0, sizeof(g->gis[gi]));
        return 0;
    }
    if (ci >= MIG_CIS_MAX || !g->gis[gi].cis[ci].slices)
        return why_set(why, ENOENT, "GPU instance %d has no compute instance %d", gi, ci);
    g->gis[gi].cis[ci] = (struct mig_ci){ 0 };
    return 0;
}

int mig_apply(struct gpu *g, const struct gpu_model *m, const struct mig_command *c,
              struct why *why)
{
    int gi;

    if (!g->settings.mig_mode)
        return why_set(why, EOPNOTSUPP, "MIG is off; switch it on first");
    switch (c->verb) {
    case MIG_CREATE:
    case MIG_CREATE_GI:
        gi = create_gi(g, m, c, why);
        return gi < 0 || c->verb == MIG_CREATE_GI ? (gi < 0 ? gi : 0) : create_ci(g, m, c, gi, why);
    case MIG_CREATE_CI:
        return create_ci(g, m, c, c->gi, why);
    case MIG_DESTROY:
        return destroy(g, c->gi, c->ci, why);
    }
    return -EINVAL;
}

bool mig_any(const struct gpu *g)
{
    for (int i = 0; i < MIG_GIS_MAX; i++)
        if (g->gis[i].used)
            return true;
    return false;
}

bool mig_has(const struct gpu *g, int gi, int ci)
{
    return gi >= 0 && gi < MIG_GIS_MAX && ci < MIG_CIS_MAX && g->gis[gi].used &&
           (ci < 0 || g->gis[gi].cis[ci].slices);
}

int mig_first_ci(const struct gpu *g, int gi)
{
    for (int ci = 0; ci < MIG_CIS_MAX; ci++)
        if (mig_has(g, gi, ci))
            return ci;
    return -1;
}

static const struct mig_profile *profile_of(const struct gpu *g, const struct gpu_model *m, int gi)
{
    return &m->mig.items[g->gis[gi].profile];
}

double mig_compute_part(const struct gpu *g, const struct gpu_model *m, int gi, int ci)
{
    const struct mig_profile *p = profile_of(g, m, gi);
    double slices = ci < 0 ? (double)p->slices : g->gis[gi].cis[ci].slices;

    return (double)p->multiprocessors * slices / (double)p->slices / (double)m->multiprocessors;
}

double mig_memory_part(const struct gpu *g, const struct gpu_model *m, int gi)
{
    return (double)profile_of(g, m, gi)->size / SLICES;
}

int64_t mig_memory_bytes(const struct gpu *g, const struct gpu_model *m, int gi)
{
    return profile_of(g, m, gi)->memory_bytes;
}

bool mig_name_parse(const char *text, char *gpu, size_t size, int *gi, int *ci)
{
    size_t length = strcspn(text, ":");
    char more;
    int n = sscanf(text + length, ":%3d:%3d%c", gi, ci, &more);

    /* A number alone or two, and nothing that sscanf would not have needed. */
    if (n < 1 || n > 2 || length == 0 || length >= size || *gi < 0 || (n == 2 && *ci < 0) ||
        strspn(text + length, ":0123456789") != strlen(text + length) ||
        (n == 1 && strchr(text + length + 1, ':')))
        return false;
    if (n == 1)
        *ci = -1;
    memcpy(gpu, text, length);
    gpu[length] = '\0';
    return true;
}

void mig_uuid(const char *gpu_uuid, int gi, int ci, char *uuid, size_t size)
{
    char name[32];
    struct rng rng;
    uint64_t a, b;

    snprintf(name, sizeof(name), "/mig/%d/%d", gi, ci);
    rng = rng_seeded(rng_hash(0, gpu_uuid), name);
    a = rng_next(&rng);
    b = rng_next(&rng);
    snprintf(uuid, size, "MIG-%08" PRIx64 "-%04" PRIx64 "-5%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
             a >> 32, a >> 16 & 0xffff, a & 0xfff, b >> 48, b & 0xffffffffffff);
}
