/*
 * Devices: which GPUs a workload takes. See devices.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/devices.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/unit.h"

#define NODES_OF_GPUS "/dev/nvidia[0-9]*"

enum { CANDIDATES_MAX = 4096 };

struct candidate {
    char name[64]; /* index, UUID or bus id */
    int processes; /* -1: lost */
};

struct candidates {
    struct candidate *items;
    int count;
    bool any; /* nobody said which: all that the mount has */
};

static int add_candidate(struct candidates *all, const char *name, size_t length)
{
    struct candidate *more;

    if (!length || length >= sizeof(more->name) || all->count == CANDIDATES_MAX)
        return length ? -E2BIG : 0;
    more = realloc(all->items, (size_t)(all->count + 1) * sizeof(*more));
    if (!more)
        return -ENOMEM;
    all->items = more;
    more[all->count] = (struct candidate){ 0 };
    memcpy(more[all->count++].name, name, length);
    return 0;
}

/* --- who is there ---------------------------------------------------------------------------- */

static int add_list(struct candidates *all, const char *list, struct why *why)
{
    while (*(list += strspn(list, ", \t\n"))) {
        size_t n = strcspn(list, ", \t\n");

        if (add_candidate(all, list, n) < 0)
            return why_set(why, E2BIG, "'%.40s…' is not a GPU", list);
        list += n;
    }
    return 0;
}

static int add_all(const struct client *c, struct candidates *all, struct why *why)
{
    struct reader_node node = { 0 };
    int r = c->reader ? reader_node(c->reader, &node) : 0;
    char index[16];

    if (r < 0)
        return why_set(why, -r, "cannot read %s: %s", c->root, strerror(-r));
    all->any = true;
    for (int i = 0; i < node.gpu_count; i++) {
        snprintf(index, sizeof(index), "%d", i);
        add_candidate(all, index, strlen(index));
    }
    return 0;
}

/* The index of the GPU whose node is nvidia<minor>, or -1. */
static int gpu_of_minor(const struct client *c, int64_t minor)
{
    struct reader_node node = { 0 };

    if (!c->reader || reader_node(c->reader, &node) < 0)
        return -1;
    for (int i = 0; i < node.gpu_count; i++)
        if (client_number(c, -1, "gpus/%d/identity/minor_number", i) == minor)
            return i;
    return -1;
}

/* Nodes that are no GPU's (nvidiactl, nvidia-uvm), or of a GPU that the mount does not have, are passed over. */
static int add_nodes(const struct client *c, struct candidates *all, const char *pattern)
{
    static const char prefix[] = "nvidia";
    glob_t found = { 0 };
    char index[16];

    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *slash = strrchr(found.gl_pathv[i], '/');
        const char *name = slash ? slash + 1 : found.gl_pathv[i];
        int64_t minor;
        int gpu = -1;

        if (!strncmp(name, prefix, sizeof(prefix) - 1) &&
            parse_i64(name + sizeof(prefix) - 1, &minor) == 0)
            gpu = gpu_of_minor(c, minor);
        if (gpu >= 0) {
            snprintf(index, sizeof(index), "%d", gpu);
            add_candidate(all, index, strlen(index));
        }
    }
    globfree(&found);
    return all->count;
}

/* As NVIDIA's container runtime takes it. */
static int add_visible(const struct client *c, struct candidates *all, struct why *why)
{
    const char *visible = getenv("NVIDIA_VISIBLE_DEVICES");

    if (visible && !strcmp(visible, "none"))
        return why_set(why, ENODEV, "NVIDIA_VISIBLE_DEVICES is 'none': no GPU can be seen");
    /* Set by CDI: what was given are device nodes. */
    if (visible && !strcmp(visible, "void"))
        return add_nodes(c, all, NODES_OF_GPUS) > 0
                   ? 0
                   : why_set(why, ENODEV,
                             "NVIDIA_VISIBLE_DEVICES is 'void', and no GPU has a node in /dev");
    if (visible && *visible && strcmp(visible, "all"))
        return add_list(all, visible, why);
    if (visible && *visible) {
        int r = add_all(c, all, why);

        all->any = false;
        return r;
    }
    return add_nodes(c, all, NODES_OF_GPUS) > 0 ? 0 : add_all(c, all, why);
}

static int find_candidates(const struct client *c, const struct devices_wish *wish,
                           struct candidates *all, struct why *why)
{
    if (wish->devices && strcmp(wish->devices, "all"))
        return add_list(all, wish->devices, why);
    if (wish->devices) {
        int r = add_all(c, all, why);

        all->any = false;
        return r;
    }
    if (wish->glob && add_nodes(c, all, wish->glob) == 0)
        return why_set(why, ENODEV, "no device node of a GPU matches '%s'", wish->glob);
    return wish->glob ? 0 : add_visible(c, all, why);
}

/* --- which of them --------------------------------------------------------------------------- */

static int count_processes(const struct client *c, const char *gpu)
{
    struct text path = TEXT_INIT, table = TEXT_INIT;
    int count = -1;

    if (client_gpu_path(c, &path, gpu, NULL) == 0 &&
        client_read(c, &table, "%s/processes", text_str(&path)) == 0) {
        count = 0;
        for (const char *p = text_str(&table); (p = strchr(p, '\n')); p++)
            count++;
    }
    text_release(&path);
    text_release(&table);
    return count;
}

/* The least busy come first, lost ones last; otherwise in the order given. */
static void sort_candidates(const struct client *c, struct candidates *all)
{
    for (int i = 0; i < all->count; i++) {
        struct candidate it = all->items[i];
        int k = i;

        it.processes = count_processes(c, it.name);
        for (; k > 0 && it.processes >= 0 &&
               (all->items[k - 1].processes > it.processes || all->items[k - 1].processes < 0);
             k--)
            all->items[k] = all->items[k - 1];
        all->items[k] = it;
    }
}

static int keep(const struct client *c, struct candidates *all, const char *gpus, struct why *why)
{
    int64_t wanted;

    if (!strcmp(gpus, "all"))
        return 0;
    if (parse_i64(gpus, &wanted) < 0 || wanted < 1)
        return why_set(why, EINVAL, "--gpus: '%s' is not a number of GPUs", gpus);
    if (wanted > all->count)
        return why_set(why, ENODEV, "%s GPUs are asked for, and %d can be seen", gpus, all->count);
    sort_candidates(c, all);
    all->count = (int)wanted;
    return 0;
}

int devices_choose(const struct client *c, const struct devices_wish *wish, struct text *out,
                   struct why *why)
{
    struct candidates all = { 0 };
    int r = find_candidates(c, wish, &all, why);

    /* One of all is what a new workload gets anyway. */
    if (r == 0 && all.any && (!wish->gpus || !strcmp(wish->gpus, "1")))
        all.count = 0;
    else if (r == 0 && wish->gpus)
        r = keep(c, &all, wish->gpus, why);
    for (int i = 0; r == 0 && i < all.count; i++)
        text_addf(out, "%s%s", i ? "," : "", all.items[i].name);
    free(all.items);
    return r;
}
