/*
 * What DCGM says of the GPUs' health, and of who reaches whom.
 *
 * DCGM's health watches look at counters and at the Xid errors of a GPU; each row below is one of their
 * reasons to complain. Where several hold, the worst is shown, and of equals the first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>

#include "exporter/entity.h"

/* --- health ---------------------------------------------------------------------------------- */

static const char *const watches[] = { "PCIE",    "NVLINK",  "PMU",   "MCU",    "MEM", "SM",
                                       "INFOROM", "THERMAL", "POWER", "DRIVER", "ALL" };

enum watch {
    WATCH_PCIE,
    WATCH_NVLINK,
    WATCH_PMU,
    WATCH_MCU,
    WATCH_MEM,
    WATCH_SM,
    WATCH_INFOROM,
    WATCH_THERMAL,
    WATCH_POWER,
    WATCH_DRIVER,
    WATCH_ALL,
    WATCHES,
};

enum health { HEALTH_PASS = 0, HEALTH_WARN = 10, HEALTH_FAIL = 20 };

enum test {
    TEST_POSITIVE, /* the metric is more than 0 */
    TEST_EQUAL,    /* it is `argument` */
    TEST_BITS,     /* it has one of these bits */
    TEST_FAILED,   /* its sensor does not answer */
    TEST_LINKS,    /* an NVLink is down */
};

struct complaint {
    enum watch watch;
    enum test test;
    enum metric metric;
    int64_t argument;
    enum health health;
    const char *code;
};

/* clang-format off */
#define XID(watch, xid, health, code) \
    { WATCH_##watch, TEST_EQUAL, METRIC_XID_LAST, xid, HEALTH_##health, "DCGM_FR_" code }
static const struct complaint complaints[] = {
    { WATCH_MEM, TEST_POSITIVE, METRIC_ECC_DBE_VOLATILE_TOTAL, 0, HEALTH_FAIL, "DCGM_FR_VOLATILE_DBE_DETECTED" },
    { WATCH_MEM, TEST_POSITIVE, METRIC_REMAPPED_ROWS_FAILURE,  0, HEALTH_FAIL, "DCGM_FR_ROW_REMAP_FAILURE" },
    { WATCH_MEM, TEST_POSITIVE, METRIC_RETIRED_PAGES_PENDING,  0, HEALTH_WARN, "DCGM_FR_PENDING_PAGE_RETIREMENTS" },
    { WATCH_MEM, TEST_POSITIVE, METRIC_REMAPPED_ROWS_PENDING,  0, HEALTH_WARN, "DCGM_FR_PENDING_ROW_REMAP" },
    { WATCH_NVLINK,  TEST_LINKS, METRIC_NVLINK_LINKS_ACTIVE_COUNT, 0, HEALTH_FAIL, "DCGM_FR_NVLINK_DOWN" },
    { WATCH_THERMAL, TEST_BITS, METRIC_THROTTLE_REASONS, 0x60, HEALTH_WARN, "DCGM_FR_CLOCK_THROTTLE_THERMAL" },
    { WATCH_POWER,   TEST_BITS, METRIC_THROTTLE_REASONS, 0x84, HEALTH_WARN, "DCGM_FR_CLOCK_THROTTLE_POWER" },
    { WATCH_POWER,   TEST_FAILED, METRIC_POWER_USAGE,    0,    HEALTH_WARN, "DCGM_FR_POWER_UNREADABLE" },
    { WATCH_DRIVER,  TEST_EQUAL, METRIC_RECOVERY_ACTION, 1, HEALTH_FAIL, "DCGM_FR_GPU_RECOVERY_RESET" },
    { WATCH_DRIVER,  TEST_EQUAL, METRIC_RECOVERY_ACTION, 2, HEALTH_FAIL, "DCGM_FR_GPU_RECOVERY_REBOOT" },
    { WATCH_DRIVER,  TEST_EQUAL, METRIC_RECOVERY_ACTION, 3, HEALTH_WARN, "DCGM_FR_GPU_RECOVERY_DRAIN_P2P" },
    { WATCH_DRIVER,  TEST_EQUAL, METRIC_RECOVERY_ACTION, 4, HEALTH_FAIL, "DCGM_FR_GPU_RECOVERY_DRAIN_RESET" },
    XID(MEM, 31, WARN, "XID_ERROR"), XID(MEM, 32, WARN, "XID_ERROR"), XID(MEM, 43, WARN, "XID_ERROR"),
    XID(MEM, 63, WARN, "PENDING_PAGE_RETIREMENTS"), XID(MEM, 64, FAIL, "ROW_REMAP_FAILURE"),
    XID(PCIE, 38, WARN, "XID_ERROR"), XID(PCIE, 39, WARN, "XID_ERROR"), XID(PCIE, 42, WARN, "XID_ERROR"),
    XID(ALL, 48, FAIL, "XID_ERROR"), XID(ALL, 74, FAIL, "XID_ERROR"), XID(ALL, 79, FAIL, "FALLEN_OFF_BUS"),
    XID(ALL, 95, FAIL, "UNCONTAINED_ERROR"), XID(ALL, 119, FAIL, "XID_ERROR"), XID(ALL, 120, FAIL, "XID_ERROR"),
    XID(ALL, 140, FAIL, "XID_ERROR"),
};
/* clang-format on */

static bool has_link_down(const struct view_gpu *gpu)
{
    for (int i = 0; i < gpu->link_count; i++)
        if (!gpu->links[i].up)
            return true;
    return false;
}

static bool holds(const struct complaint *c, const struct entity *e)
{
    int64_t value = 0;
    int r = entity_read(e, c->metric, &value);

    switch (c->test) {
    case TEST_POSITIVE:
        return r == 0 && value > 0;
    case TEST_EQUAL:
        return r == 0 && value == c->argument;
    case TEST_BITS:
        return r == 0 && (value & c->argument);
    case TEST_FAILED:
        return r == -EIO;
    case TEST_LINKS:
        return has_link_down(e->gpu);
    }
    return false;
}

static int add_watch(struct exposing *x, struct family *f, const struct entity *e, enum watch watch)
{
    const struct complaint *worst = NULL;
    struct label labels[] = { { "health_watch", watches[watch] }, { "health_error_code", "" } };

    for (size_t i = 0; i < sizeof(complaints) / sizeof(complaints[0]); i++)
        if (complaints[i].watch == watch && holds(&complaints[i], e) &&
            (!worst || complaints[i].health > worst->health))
            worst = &complaints[i];
    labels[1].value = worst ? worst->code : "DCGM_FR_OK";
    return family_add(x, f, e, worst ? worst->health : HEALTH_PASS, labels, 2);
}

int expose_health(struct exposing *x, const struct counter *c)
{
    struct family *f = family_begin(x, c->name, c->help, c->type, x->entities.count * WATCHES);
    int r = f ? 0 : -ENOMEM;

    for (size_t i = 0; i < x->entities.count && r == 0; i++)
        for (int watch = 0; watch < WATCHES && r == 0; watch++)
            r = add_watch(x, f, &x->entities.items[i], (enum watch)watch);
    if (r == 0)
        family_end(x, f);
    return r;
}

/* --- peers ----------------------------------------------------------------------------------- */

/* NVML's status of a peer. */
enum { P2P_OK = 0, P2P_NOT_SUPPORTED = 5 };

static bool reaches(const struct view_link *link, const struct view_gpu *other)
{
    if (!link->up || link->peer_gpu == other->position)
        return link->up;
    for (int i = 0; link->peer_switch >= 0 && i < other->link_count; i++)
        if (other->links[i].up && other->links[i].peer_switch == link->peer_switch)
            return true;
    return false;
}

static bool are_linked(const struct view_gpu *one, const struct view_gpu *other)
{
    for (int i = 0; i < one->link_count; i++)
        if (reaches(&one->links[i], other))
            return true;
    return false;
}

static int add_peer(struct exposing *x, struct family *f, const struct entity *e,
                    const struct view_gpu *other)
{
    bool linked = are_linked(e->gpu, other);
    char peer[32];
    struct label labels[] = { { "peer_gpu", peer },
                              { "link_status", linked ? "OK" : "NotSupported" } };

    snprintf(peer, sizeof(peer), "%d", other->index);
    return family_add(x, f, e, linked ? P2P_OK : P2P_NOT_SUPPORTED, labels, 2);
}

/* The other GPUs of its node; all of a node stand together. */
static int count_peers(const struct exposing *x, const struct view_gpu *gpu)
{
    return (x->view->nodes ? x->view->nodes[gpu->node].count : x->view->gpu_count) - 1;
}

int expose_p2p(struct exposing *x, const struct counter *c)
{
    size_t room = 0;
    struct family *f;
    int r;

    for (size_t i = 0; i < x->entities.count; i++)
        room += (size_t)count_peers(x, x->entities.items[i].gpu);
    f = family_begin(x, c->name, c->help, c->type, room);
    r = f ? 0 : -ENOMEM;
    for (size_t i = 0; i < x->entities.count && r == 0; i++) {
        const struct view_gpu *gpu = x->entities.items[i].gpu, *first = gpu - gpu->index;

        for (int other = 0; other <= count_peers(x, gpu) && r == 0; other++)
            if (&first[other] != gpu)
                r = add_peer(x, f, &x->entities.items[i], &first[other]);
    }
    if (r == 0)
        family_end(x, f);
    return r;
}
