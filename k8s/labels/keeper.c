/*
 * Keeper: one look at the mount and the node, and what follows from it. See keeper.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/labels/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/realtime.h"
#include "k8s/common/mount.h"

#define LABELS_FILE "k8s/labels"

enum {
    LABELS_BYTES = 64 * 1024, /* a line for each label, some dozens of them */
    CONFLICTS_MAX = 5,        /* in a row: somebody changes the node all the time */
};

/* What schedulers and selectors of NVIDIA's samples look for; and what the mount says when there is nothing to find. */
static const struct label present_label = { "nvidia.com/gpu", "present" };
static const struct label absent_label = { "nvidia.com/gpu.present", "false" };

/* --- the mount ------------------------------------------------------------------------------- */

static int read_labels(struct keeper *k, struct text *out, struct why *why)
{
    struct arena arena = ARENA_INIT;
    char *buf = arena_alloc(&arena, LABELS_BYTES);
    struct mount mount;
    int r = mount_open(&mount, k->o->common.root, why), n;

    if (r == 0) {
        n = buf ? reader_text(mount.reader, LABELS_FILE, buf, LABELS_BYTES) : -ENOMEM;
        mount_close(&mount);
        if (n < 0)
            r = why_set(why, -n, "cannot read " LABELS_FILE " of %s: %s", k->o->common.root,
                        strerror(-n));
        else
            text_addn(out, buf, (size_t)n);
    }
    arena_release(&arena);
    return r;
}

static bool has_gpus(const struct label_list *labels)
{
    const char *value = labels_find(labels, absent_label.key);

    return !value || strcmp(value, absent_label.value);
}

static int parse_labels(struct label_list *wanted, const char *text, struct arena *arena,
                        struct why *why)
{
    int r = labels_parse(wanted, text, 1, LABELS_FILE, arena, why);

    if (r == 0 && has_gpus(wanted) && !labels_find(wanted, present_label.key))
        labels_add(wanted, present_label.key, present_label.value);
    return r;
}

/* --- the node -------------------------------------------------------------------------------- */

static void tell_changes(const struct keeper *k, const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct text line = TEXT_INIT;

        change_describe(&line, &plan->items[i]);
        if (k->o->common.dry_run)
            printf("%s\n", text_str(&line));
        else
            log_line(k->o->check ? LOG_WARN : LOG_INFO, "node %s: %s%s", k->o->node,
                     k->o->check ? "to be done: " : "", text_str(&line));
        text_release(&line);
    }
}

static int change_node(struct keeper *k, const struct node *node, const struct plan *plan,
                       struct why *why)
{
    struct text patch = TEXT_INIT;
    int r = node_patch(&patch, node, plan);

    if (r > 0)
        r = server_patch(k->server, text_str(&patch), why);
    else if (r < 0)
        why_set(why, -r, "out of memory");
    text_release(&patch);
    if (r == 0)
        tell_changes(k, plan);
    return r;
}

static int settle_once(struct keeper *k, const struct label_list *wanted, struct arena *arena,
                       struct why *why)
{
    struct plan plan;
    struct node node;
    int r = server_get(k->server, &node, arena, why);

    if (r == 0 && plan_make(&plan, wanted, &node.labels, &node.ours, arena) < 0)
        r = why_set(why, ENOMEM, "out of memory");
    if (r < 0)
        return r;
    if (!k->o->common.dry_run && !k->o->check)
        return change_node(k, &node, &plan, why);
    tell_changes(k, &plan);
    return k->o->check && plan.count ? -EAGAIN : 0;
}

/* Makes the node have these of ours and no others. */
static int settle(struct keeper *k, const struct label_list *wanted, struct arena *arena)
{
    struct why why = { 0 };
    int r, conflicts = 0;

    do {
        r = settle_once(k, wanted, arena, &why);
    } while (r == -EBUSY && ++conflicts < CONFLICTS_MAX);
    if (r == 0 || r == -EAGAIN) {
        say_well(&k->about_server, "the API server answers");
    } else if (say_failure(&k->about_server, r, &why) != -EINTR) {
        r = -EREMOTEIO;
    }
    why_release(&why);
    return r;
}

/* --- looking --------------------------------------------------------------------------------- */

static bool is_set(const struct keeper *k, const struct text *labels)
{
    return k->set.length && !strcmp(text_str(&k->set), text_str(labels)) &&
           real_ns(CLOCK_MONOTONIC) - k->set_ns < k->o->resync_ns;
}

static void remember(struct keeper *k, const struct text *labels)
{
    text_cut(&k->set, 0);
    text_add(&k->set, text_str(labels));
    k->set_ns = real_ns(CLOCK_MONOTONIC);
}

int keeper_look(struct keeper *k, bool anew)
{
    struct arena arena = ARENA_INIT;
    struct text text = TEXT_INIT;
    struct label_list wanted;
    struct why why = { 0 };
    int r = read_labels(k, &text, &why);

    if (r == 0)
        r = parse_labels(&wanted, text_str(&text), &arena, &why);
    if (say_failure(&k->about_mount, r, &why) < 0) {
        r = -ENODEV;
    } else {
        say_well(&k->about_mount, "the mount is there");
        if (anew || !is_set(k, &text)) {
            r = settle(k, &wanted, &arena);
            text_cut(&k->set, 0);
            if (r == 0)
                remember(k, &text);
        }
    }
    why_release(&why);
    text_release(&text);
    arena_release(&arena);
    return r;
}

int keeper_remove(struct keeper *k)
{
    const struct label_list nothing = { 0 };
    struct arena arena = ARENA_INIT;
    int r = settle(k, &nothing, &arena);

    arena_release(&arena);
    return r;
}

void keeper_release(struct keeper *k)
{
    text_release(&k->set);
    said_release(&k->about_mount);
    said_release(&k->about_server);
}
