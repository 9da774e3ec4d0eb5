/*
 * Mirror: one look at the kubelet and the mount, and what follows from it. See mirror.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/mirror.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "k8s/pods/kubelet.h"

/* --- doing ----------------------------------------------------------------------------------- */

static void print_operation(const struct operation *o)
{
    if (o->kind == OPERATION_REMOVE)
        printf("remove %s: %s\n", o->name, o->reason);
    else
        printf("create %s: %s/%s/%s on GPU %s\n", o->name, o->who.namespace, o->who.pod,
               o->who.container, o->devices);
}

static int do_create(struct mirror *m, struct mount *mount, const struct operation *o,
                     struct why *why)
{
    struct text refused = TEXT_INIT;
    int r = mount_create(mount, o, &m->o->defaults, &refused, why);

    if (r == 0)
        log_line(LOG_INFO, "%s/%s/%s is on GPU %s: workload %s", o->who.namespace, o->who.pod,
                 o->who.container, o->devices, o->name);
    log_lines(LOG_WARN, text_str(&refused));
    text_release(&refused);
    return r;
}

static int do_remove(struct mount *mount, const struct operation *o, struct why *why)
{
    int r = mount_remove(mount, o->name, why);

    if (r == 0)
        log_line(LOG_INFO, "workload %s is removed: %s", o->name, o->reason);
    return r;
}

/* What cannot be done joins the problems. */
static void do_plan(struct mirror *m, struct mount *mount, struct plan *plan)
{
    struct why why = { 0 };

    for (size_t i = 0; i < plan->count; i++) {
        const struct operation *o = &plan->items[i];
        int r = 0;

        if (m->o->common.dry_run)
            print_operation(o);
        else if (o->kind == OPERATION_REMOVE)
            r = do_remove(mount, o, &why);
        else
            r = do_create(m, mount, o, &why);
        if (r < 0)
            text_addf(&plan->problems, "%s\n", why_text(&why));
    }
    why_release(&why);
}

/* --- looking --------------------------------------------------------------------------------- */

static bool need_minors(const struct claim_list *claims)
{
    for (size_t i = 0; i < claims->count; i++)
        for (size_t k = 0; k < claims->items[i].id_count; k++)
            if (device_is_minor(claims->items[i].ids[k]))
                return true;
    return false;
}

static int follow(struct mirror *m, struct mount *mount, const struct claim_list *claims,
                  struct arena *arena, struct why *why)
{
    struct present_list present;
    struct inventory inventory;
    struct plan plan;
    int r = mount_read_gpus(mount, need_minors(claims), &inventory, arena, why);

    if (r == 0)
        r = mount_read_workloads(mount, &present, arena, why);
    if (say_failure(&m->about_mount, r, why) < 0)
        return -EREMOTEIO;
    r = plan_make(&plan, claims, &inventory, &present, arena);
    if (r == 0)
        do_plan(m, mount, &plan);
    if (r == 0 && plan.problems.length) {
        say(&m->about_pods, LOG_WARN, text_str(&plan.problems));
        r = -EAGAIN;
    } else if (r == 0) {
        say_well(&m->about_pods, "every pod with GPUs has its workload now");
    }
    plan_release(&plan);
    return r;
}

int mirror_look(struct mirror *m)
{
    const struct kubelet_query query = { m->o->resources, m->o->namespace, m->o->pod };
    struct arena arena = ARENA_INIT;
    struct claim_list claims;
    struct why why = { 0 };
    struct mount mount;
    int r = mount_open(&mount, m->o->common.root, &why);

    if (say_failure(&m->about_mount, r, &why) < 0) {
        why_release(&why);
        return -EREMOTEIO;
    }
    say_well(&m->about_mount, "the mount is there");
    r = kubelet_list(m->kubelet, &query, &claims, &arena, &why);
    if (say_failure(&m->about_kubelet, r, &why) < 0) {
        r = -EREMOTEIO;
    } else {
        say_well(&m->about_kubelet, "the kubelet answers");
        log_line(LOG_DEBUG, "%zu containers have GPUs", claims.count);
        r = follow(m, &mount, &claims, &arena, &why);
    }
    mount_close(&mount);
    arena_release(&arena);
    why_release(&why);
    return r;
}

/* As if no pod had anything. */
void mirror_remove_all(struct mirror *m)
{
    const struct claim_list nobody = { 0 };
    struct arena arena = ARENA_INIT;
    struct why why = { 0 };
    struct mount mount;

    if (mount_open(&mount, m->o->common.root, &why) == 0) {
        follow(m, &mount, &nobody, &arena, &why);
        mount_close(&mount);
    }
    arena_release(&arena);
    why_release(&why);
}

void mirror_release(struct mirror *m)
{
    said_release(&m->about_kubelet);
    said_release(&m->about_mount);
    said_release(&m->about_pods);
}
