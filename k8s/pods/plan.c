/*
 * Plan: from what pods have and what the mount shows to what has to be done. See plan.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- names ----------------------------------------------------------------------------------- */

enum {
    MARK = 1 + 8,   /* "-" and the digits of who it is */
    ALLOCATION = 4, /* the digits of what it has */
    READABLE = PLAN_NAME - 1 - (int)(sizeof(PLAN_PREFIX) - 1) - MARK - ALLOCATION,
};

#define HASH_START UINT32_C(2166136261)

/* FNV-1a, the text's end included, so that "a" "bc" is not "ab" "c". */
static uint32_t hash(uint32_t h, const char *text)
{
    do
        h = (h ^ (unsigned char)*text) * UINT32_C(16777619);
    while (*text++);
    return h;
}

static uint32_t hash_holder(const struct holder *who)
{
    return hash(hash(hash(HASH_START, who->namespace), who->pod), who->container);
}

/* The same in any order. */
static uint32_t hash_devices(const struct device_set *devices)
{
    uint32_t h = 0;

    for (size_t i = 0; i < devices->count; i++)
        h ^= hash(HASH_START, devices->items[i].uuid);
    return (h >> 16 ^ h) & 0xffff;
}

static void append(char *name, size_t *length, size_t room, const char *text)
{
    for (; *text && *length < room; text++)
        name[(*length)++] = isalnum((unsigned char)*text) || strchr("-_.", *text) ? *text : '_';
}

/* Everything up to the digits of the devices. Returns its length. */
static size_t name_owner(char name[PLAN_NAME], const struct holder *who)
{
    const char *const parts[] = { who->namespace, "-", who->pod, "-", who->container };
    size_t length = strlen(PLAN_PREFIX), room = length + READABLE;

    strcpy(name, PLAN_PREFIX);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        append(name, &length, room, parts[i]);
    length += (size_t)sprintf(name + length, "-%08x", (unsigned)hash_holder(who));
    return length;
}

void plan_name(char name[PLAN_NAME], const struct holder *who, const struct device_set *devices)
{
    size_t length = name_owner(name, who);

    sprintf(name + length, "%0*x", ALLOCATION, (unsigned)hash_devices(devices));
}

bool plan_is_ours(const struct present *p)
{
    char name[PLAN_NAME];
    size_t length = name_owner(name, &p->who);

    return !strncmp(p->name, name, length) && strlen(p->name) == length + ALLOCATION &&
           strspn(p->name + length, "0123456789abcdef") == ALLOCATION;
}

/* --- what is wanted -------------------------------------------------------------------------- */

/* A workload that there should be. */
struct wish {
    char name[PLAN_NAME];
    const struct claim *claim;
    struct device_set devices;
    bool lost; /* one of its GPUs is: nothing can be started on it now */
    const struct present *found;
};

struct planner {
    struct plan *plan;
    const struct claim_list *claims;
    const struct inventory *inventory;
    const struct present_list *present;
    struct arena *arena;
    struct wish *wishes;
    size_t wish_count;
};

static void problem(struct planner *p, const struct holder *who, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void problem(struct planner *p, const struct holder *who, const char *fmt, ...)
{
    struct text *out = &p->plan->problems;
    va_list ap;

    text_addf(out, "%s/%s/%s: ", who->namespace, who->pod, who->container);
    va_start(ap, fmt);
    text_vaddf(out, fmt, ap);
    va_end(ap);
    text_add(out, "\n");
}

/* A pod's own workload stands for the container that it names, or for all of the pod's. */
static bool stands_for(const struct present *own, const struct holder *who)
{
    return !strcmp(own->who.namespace, who->namespace) && !strcmp(own->who.pod, who->pod) &&
           (!*own->who.container || !strcmp(own->who.container, who->container));
}

/* Whether there is one that is not called `ours`: that may be unfinished and say only half of this. */
static bool has_own(const struct planner *p, const struct holder *who, const char *ours)
{
    for (size_t i = 0; i < p->present->count; i++) {
        const struct present *here = &p->present->items[i];

        if (strcmp(here->name, ours) && !plan_is_ours(here) && stands_for(here, who))
            return true;
    }
    return false;
}

static int find_devices(struct planner *p, struct wish *w)
{
    w->devices.items = arena_alloc(p->arena, (w->claim->id_count + 1) * sizeof(struct device));
    if (!w->devices.items)
        return -ENOMEM;
    for (size_t i = 0; i < w->claim->id_count; i++) {
        struct device d;

        if (device_find(p->inventory, w->claim->ids[i], &d) < 0) {
            problem(p, &w->claim->who, "there is no GPU '%s' in the mount", w->claim->ids[i]);
            continue;
        }
        device_add(&w->devices, &d);
        w->lost |= p->inventory->gpus[d.gpu].lost;
    }
    return 0;
}

static struct wish *find_wish(const struct planner *p, const char *name)
{
    for (size_t i = 0; i < p->wish_count; i++)
        if (!strcmp(p->wishes[i].name, name))
            return &p->wishes[i];
    return NULL;
}

static int make_wishes(struct planner *p)
{
    p->wishes = arena_alloc(p->arena, (p->claims->count + 1) * sizeof(struct wish));
    if (!p->wishes)
        return -ENOMEM;
    for (size_t i = 0; i < p->claims->count; i++) {
        struct wish *w = &p->wishes[p->wish_count];

        *w = (struct wish){ .claim = &p->claims->items[i] };
        if (find_devices(p, w) < 0)
            return -ENOMEM;
        plan_name(w->name, &w->claim->who, &w->devices);
        if (w->devices.count && !find_wish(p, w->name) && !has_own(p, &w->claim->who, w->name))
            p->wish_count++;
    }
    return 0;
}

/* --- what to do ------------------------------------------------------------------------------ */

static struct operation *add(struct planner *p, enum operation_kind kind, const char *name)
{
    struct operation *o = &p->plan->items[p->plan->count++];

    *o = (struct operation){ .kind = kind, .name = name };
    return o;
}

/* Made, and its maker ended before he could say whose it is. */
static bool is_unfinished(const struct present *found, const struct holder *who)
{
    const char *const has[] = { found->who.namespace, found->who.pod, found->who.container };
    const char *const wants[] = { who->namespace, who->pod, who->container };

    for (size_t i = 0; i < sizeof(has) / sizeof(has[0]); i++)
        if (*has[i] && strcmp(has[i], wants[i]))
            return false;
    return true;
}

static const char *reason_to_remove(const struct planner *p, const struct present *ours)
{
    for (size_t i = 0; i < p->claims->count; i++)
        if (stands_for(ours, &p->claims->items[i].who))
            return has_own(p, &ours->who, ours->name) ? "the pod has its own"
                                                      : "the pod has other devices now";
    return "the pod is gone";
}

/* Why what has the name of a wish must go before that can be made; NULL: it stays. */
static const char *reason_to_replace(const struct wish *w, const struct present *here)
{
    if (!plan_is_ours(here))
        return is_unfinished(here, &w->claim->who) ? "it was left unfinished" : NULL;
    return here->gpu_lost && !w->lost ? "its GPU is back" : NULL;
}

/* First what goes, so that there is room for what comes. */
static void plan_removals(struct planner *p)
{
    for (size_t i = 0; i < p->present->count; i++) {
        const struct present *here = &p->present->items[i];
        struct wish *w = find_wish(p, here->name);
        const char *reason = w                    ? reason_to_replace(w, here)
                             : plan_is_ours(here) ? reason_to_remove(p, here)
                                                  : NULL;

        if (reason)
            add(p, OPERATION_REMOVE, here->name)->reason = reason;
        else if (w)
            w->found = here;
        if (w && w->found && !plan_is_ours(here))
            problem(p, &w->claim->who, "the workload '%s' is somebody else's", here->name);
    }
}

static const char *describe_devices(struct planner *p, const struct device_set *devices)
{
    struct text text = TEXT_INIT;
    const char *result = NULL;

    for (size_t i = 0; i < devices->count; i++) {
        const struct device *d = &devices->items[i];

        text_addf(&text, i ? ",%d" : "%d", d->gpu);
        if (d->mig)
            text_addf(&text, ":%d:%d", d->mig->gi, d->mig->ci);
    }
    if (!text.failed)
        result = arena_strndup(p->arena, text_str(&text), text.length);
    text_release(&text);
    return result;
}

static int plan_creations(struct planner *p)
{
    for (size_t i = 0; i < p->wish_count; i++) {
        struct wish *w = &p->wishes[i];
        struct operation *o;

        if (w->found)
            continue;
        if (w->lost) {
            problem(p, &w->claim->who, "a GPU of '%s' is lost", w->name);
            continue;
        }
        o = add(p, OPERATION_CREATE, w->name);
        o->who = w->claim->who;
        o->devices = describe_devices(p, &w->devices);
        if (!o->devices)
            return -ENOMEM;
    }
    return 0;
}

int plan_make(struct plan *plan, const struct claim_list *claims, const struct inventory *inventory,
              const struct present_list *present, struct arena *arena)
{
    struct planner p = {
        .plan = plan, .claims = claims, .inventory = inventory, .present = present, .arena = arena
    };
    int r;

    *plan = (struct plan){ .problems = TEXT_INIT };
    plan->items = arena_alloc(arena, (claims->count + present->count + 1) * sizeof(*plan->items));
    r = plan->items ? make_wishes(&p) : -ENOMEM;
    if (r < 0)
        return r;
    plan_removals(&p);
    r = plan_creations(&p);
    return r < 0 || plan->problems.failed ? -ENOMEM : 0;
}

void plan_release(struct plan *plan)
{
    text_release(&plan->problems);
}
