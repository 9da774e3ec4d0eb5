/*
 * Fault: what faults do to a GPU. See fault_apply.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/fault_apply.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sim/text.h"
#include "sim/why.h"
#include "sim/world.h"

enum {
    XID_ECC_DBE = 48,
    XID_RETIREMENT = 63,
    XID_RETIREMENT_FAILED = 64,
    XID_NVLINK = 74,
    XID_CONTAINED = 94,
    XID_HANG = 109,
};

/* The fault with all it concerns. */
struct blow {
    struct stepping *st;
    int i;
    struct gpu *g;
    const struct gpu_plan *plan;
    const struct gpu_model *m;
    const struct fault *f;
    int64_t until_ns;
    struct why *why;
};

typedef int blow_fn(struct blow *b);

static int not_supported(struct blow *b, const char *what)
{
    return why_set(b->why, EOPNOTSUPP, "GPU %d (%s) %s", b->i, b->m->name, what);
}

static void count(struct blow *b, enum metric id, int64_t more)
{
    b->g->sample.value[id] += more;
}

static int blow_xid(struct blow *b)
{
    gpu_xid(b->st, b->i, b->f->number);
    b->g->xid_until_ns = b->until_ns;
    return 0;
}

/* Rows and pages are marked at once and replaced at the next reset. */
static void mark_bad_memory(struct blow *b, bool correctable, int64_t n)
{
    if (b->m->ecc.row_remap_banks) {
        count(b,
              correctable ? METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL
                          : METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL,
              n);
        b->g->sample.value[METRIC_REMAPPED_ROWS_PENDING] = 1;
        gpu_event(b->st, b->i, EVENT_ROW_REMAP,
                  correctable ? FAULT_CORRECTABLE : FAULT_UNCORRECTABLE, n, NULL);
    } else if (b->m->ecc.page_retirement) {
        count(b, correctable ? METRIC_RETIRED_PAGES_SBE_TOTAL : METRIC_RETIRED_PAGES_DBE_TOTAL, n);
        b->g->sample.value[METRIC_RETIRED_PAGES_PENDING] = 1;
        gpu_event(b->st, b->i, EVENT_PAGE_RETIRED,
                  correctable ? FAULT_CORRECTABLE : FAULT_UNCORRECTABLE, n, NULL);
    } else {
        return;
    }
    gpu_xid(b->st, b->i, XID_RETIREMENT);
}

static int blow_ecc(struct blow *b)
{
    if (!b->m->ecc.supported)
        return not_supported(b, "has no ECC");
    if (!b->g->settings.ecc_mode)
        return not_supported(b, "has ECC switched off");
    if (b->f->which == FAULT_CORRECTABLE) {
        count(b, METRIC_ECC_SBE_VOLATILE_TOTAL, b->f->number);
        gpu_event(b->st, b->i, EVENT_ECC_SBE, 0, b->f->number, NULL);
        return 0;
    }
    count(b, METRIC_ECC_DBE_VOLATILE_TOTAL, b->f->number);
    gpu_event(b->st, b->i, EVENT_ECC_DBE, 0, b->f->number, NULL);
    gpu_xid(b->st, b->i, XID_ECC_DBE);
    mark_bad_memory(b, false, b->f->number);
    if (b->m->ecc.row_remap_banks)
        gpu_xid(b->st, b->i, XID_CONTAINED);
    return 0;
}

static int blow_rows(struct blow *b)
{
    if (!b->m->ecc.row_remap_banks)
        return not_supported(b, "does not remap rows");
    if (b->f->which == FAULT_FAILURE) {
        b->g->sample.value[METRIC_REMAPPED_ROWS_FAILURE] = 1;
        gpu_event(b->st, b->i, EVENT_ROW_REMAP, FAULT_FAILURE, 1, NULL);
        gpu_xid(b->st, b->i, XID_RETIREMENT_FAILED);
        return 0;
    }
    mark_bad_memory(b, b->f->which == FAULT_CORRECTABLE, b->f->number);
    return 0;
}

static int blow_pages(struct blow *b)
{
    if (!b->m->ecc.page_retirement)
        return not_supported(b, "does not retire pages");
    mark_bad_memory(b, b->f->which == FAULT_CORRECTABLE, b->f->number);
    return 0;
}

static int blow_thermal(struct blow *b)
{
    b->g->cooling_fault = b->f->factor;
    b->g->condition_until_ns[CONDITION_THERMAL] = b->until_ns;
    return 0;
}

static int blow_power_brake(struct blow *b)
{
    b->g->condition_until_ns[CONDITION_POWER_BRAKE] = b->until_ns;
    return 0;
}

static int blow_hang(struct blow *b)
{
    b->g->condition_until_ns[CONDITION_HANG] = b->until_ns;
    gpu_xid(b->st, b->i, XID_HANG);
    return 0;
}

static void link_down(struct blow *b, int l)
{
    struct link *link = &b->g->links[l];

    link->down_until_ns = b->until_ns;
    link->replay++;
    link->recovery++;
    link->crc_flit++;
    gpu_event(b->st, b->i, EVENT_NVLINK, l, 0, NULL);
}

static int blow_nvlink(struct blow *b)
{
    bool all = b->f->number == FAULT_ALL_LINKS, any = false;

    for (int l = 0; l < NVLINK_LINKS_MAX; l++) {
        if (b->plan->links[l].peer == LINK_NONE || (!all && l != b->f->number))
            continue;
        any = true;
        if (b->f->which == FAULT_DOWN) {
            link_down(b, l);
        } else if (b->g->links[l].down_until_ns) {
            b->g->links[l].down_until_ns = 0;
            gpu_event(b->st, b->i, EVENT_NVLINK, l, 1, NULL);
        }
    }
    if (!any)
        return not_supported(b, all ? "has no NVLink connection" : "has no such NVLink connection");
    if (b->f->which == FAULT_DOWN)
        gpu_xid(b->st, b->i, XID_NVLINK);
    return 0;
}

static int blow_sensor(struct blow *b)
{
    struct broken_sensor *slot = NULL;

    if (!metric_mask_has(&b->g->sample.valid, (enum metric)b->f->number))
        return not_supported(b, "has no such metric");
    for (int k = BROKEN_SENSORS_MAX - 1; k >= 0; k--) {
        struct broken_sensor *s = &b->g->broken[k];

        if (s->until_ns && s->metric == b->f->number) {
            slot = s;
            break;
        }
        if (!s->until_ns)
            slot = s;
    }
    if (!slot)
        return why_set(b->why, ENOSPC, "GPU %d has %d silent sensors already", b->i,
                       BROKEN_SENSORS_MAX);
    slot->metric = (int32_t)b->f->number;
    slot->until_ns = b->until_ns;
    return 0;
}

static int blow_fallen_off_bus(struct blow *b)
{
    gpu_lose(b->st, b->i, b->until_ns);
    return 0;
}

/* A reset: what was volatile is gone, what was pending is done, what was asked for is so. */
static int blow_recover(struct blow *b)
{
    struct gpu *g = b->g;
    int64_t *v = g->sample.value;
    bool was_off = gpu_has(g, CONDITION_LOST);

    memset(g->condition_until_ns, 0, sizeof(g->condition_until_ns));
    if (was_off)
        gpu_cool_down(b->st, b->i);
    memset(g->broken, 0, sizeof(g->broken));
    for (int l = 0; l < NVLINK_LINKS_MAX; l++)
        g->links[l].down_until_ns = 0;
    g->sw_thermal = g->hw_thermal = 0;
    g->thermal_cap = 1;
    g->xid_until_ns = 0;
    v[METRIC_XID_LAST] = 0;
    g->ecc_sbe_before += v[METRIC_ECC_SBE_VOLATILE_TOTAL];
    g->ecc_dbe_before += v[METRIC_ECC_DBE_VOLATILE_TOTAL];
    v[METRIC_ECC_SBE_VOLATILE_TOTAL] = v[METRIC_ECC_DBE_VOLATILE_TOTAL] = 0;
    v[METRIC_REMAPPED_ROWS_PENDING] = v[METRIC_REMAPPED_ROWS_FAILURE] = 0;
    v[METRIC_RETIRED_PAGES_PENDING] = 0;
    g->settings.ecc_mode = g->settings.ecc_mode_pending;
    g->settings.mig_mode = g->settings.mig_mode_pending;
    gpu_refresh_static(b->st, b->i);
    gpu_event(b->st, b->i, EVENT_RECOVERED, 0, 0, NULL);
    return 0;
}

static blow_fn *const blows[FAULT_KINDS] = {
    [FAULT_XID] = blow_xid,         [FAULT_ECC] = blow_ecc,
    [FAULT_ROWS] = blow_rows,       [FAULT_PAGES] = blow_pages,
    [FAULT_THERMAL] = blow_thermal, [FAULT_POWER_BRAKE] = blow_power_brake,
    [FAULT_HANG] = blow_hang,       [FAULT_NVLINK] = blow_nvlink,
    [FAULT_SENSOR] = blow_sensor,   [FAULT_FALLEN_OFF_BUS] = blow_fallen_off_bus,
    [FAULT_RECOVER] = blow_recover,
};

/* Every fault is an event in the words it was written in; what follows from it are others. */
static void say_fault(struct blow *b)
{
    struct text words = TEXT_INIT;

    fault_print(&words, b->f);
    gpu_event(b->st, b->i, EVENT_FAULT, 0, 0, text_str(&words));
    text_release(&words);
}

int gpu_fault(struct stepping *st, int i, const struct fault *f, struct why *why)
{
    const struct gpu_plan *plan = &world_gpu_plans(st->world)[i];
    struct blow b = {
        .st = st,
        .i = i,
        .g = &world_gpus(st->world)[i],
        .plan = plan,
        .m = &world_models(st->world)[plan->model],
        .f = f,
        .until_ns = f->for_ns ? st->world->node.now_ns + f->for_ns : INT64_MAX,
        .why = why,
    };
    int r;

    if (gpu_has(b.g, CONDITION_LOST) && f->kind != FAULT_RECOVER)
        return why_set(why, ENODEV, "GPU %d has fallen off the bus; recover it first", i);
    r = blows[f->kind](&b);
    if (r == 0 && f->kind != FAULT_RECOVER)
        say_fault(&b);
    return r;
}

/* A planned fault that cannot happen (any more) is passed over: the plan was checked when it was read. */
static void happen(struct stepping *st, const struct planned_fault *p)
{
    int first = p->gpu < 0 ? 0 : p->gpu;
    int behind = p->gpu < 0 ? (int)st->world->used[SECTION_GPUS] : p->gpu + 1;
    struct fault f = p->fault;

    f.for_ns = p->for_ns;
    for (int i = first; i < behind; i++)
        gpu_fault(st, i, &f, NULL);
}

void faults_step(struct stepping *st)
{
    struct world *w = st->world;
    const struct planned_fault *plan = world_faults(w);
    struct due_fault *due = world_due(w);

    for (uint32_t k = 0; k < w->used[SECTION_FAULTS]; k++) {
        if (w->node.now_ns < due[k].at_ns)
            continue;
        happen(st, &plan[k]);
        due[k].at_ns = plan[k].every_ns ? due[k].at_ns + plan[k].every_ns : INT64_MAX;
    }
}
