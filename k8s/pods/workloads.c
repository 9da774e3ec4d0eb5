/*
 * Workloads: the mount as the plan needs it, and what the plan says done to it. See workloads.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/workloads.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/unit.h"

enum {
    VALUE_BYTES = 512,      /* a name, a state, a sentence */
    TABLE_BYTES = 64 * 1024 /* a GPU's MIG instances: at most some dozens of lines */
};

/* --- the mount ------------------------------------------------------------------------------- */

static char *path_of(const struct mount *m, const char *name)
{
    char *path;

    return asprintf(&path, "%s/workloads/%s", m->root, name) < 0 ? NULL : path;
}

/* A file of a workload: its length or -errno. */
static int read_file(struct mount *m, const char *name, const char *file, char value[VALUE_BYTES])
{
    char path[VALUE_BYTES];

    snprintf(path, sizeof(path), "workloads/%s/%s", name, file);
    return reader_text(m->reader, path, value, VALUE_BYTES);
}

static int write_file(struct mount *m, const char *name, const char *file, const char *text)
{
    char path[VALUE_BYTES];

    snprintf(path, sizeof(path), "workloads/%s/%s", name, file);
    return reader_write(m->reader, path, text);
}

/* --- GPUs ------------------------------------------------------------------------------------ */

static int64_t read_number(struct mount *m, size_t gpu, const char *file)
{
    char path[64], text[64];
    int64_t value;

    snprintf(path, sizeof(path), "gpus/%zu/identity/%s", gpu, file);
    return reader_text(m->reader, path, text, sizeof(text)) < 0 || parse_i64(text, &value) < 0
               ? -1
               : value;
}

static size_t count_lines(const char *text)
{
    size_t count = 0;

    for (; (text = strchr(text, '\n')); text++)
        count++;
    return count + 1;
}

/* A line of mig/instances; those without a compute instance are nothing to be given. */
static bool read_mig(const char *line, struct mig_device *mig)
{
    return sscanf(line, "%d %d %*s %*s %*s %*s %*s %47s", &mig->gi, &mig->ci, mig->uuid) == 3;
}

static int read_migs(struct mount *m, size_t index, struct gpu *gpu, struct arena *arena)
{
    char path[64], *table = arena_alloc(arena, TABLE_BYTES);

    snprintf(path, sizeof(path), "gpus/%zu/mig/instances", index);
    if (!table)
        return -ENOMEM;
    if (reader_text(m->reader, path, table, TABLE_BYTES) < 0)
        return 0; /* it went meanwhile: so did its instances */
    gpu->migs = arena_alloc(arena, count_lines(table) * sizeof(*gpu->migs));
    if (!gpu->migs)
        return -ENOMEM;
    for (char *line = table; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        gpu->mig_count += read_mig(line, &gpu->migs[gpu->mig_count]);
    }
    return 0;
}

int mount_read_gpus(struct mount *m, bool minors, struct inventory *inventory, struct arena *arena,
                    struct why *why)
{
    struct reader_node node;
    int r = reader_node(m->reader, &node);

    *inventory = (struct inventory){ .count = 0 };
    if (r < 0)
        return why_set(why, -r, "cannot read %s: %s", m->root, strerror(-r));
    inventory->gpus = arena_alloc(arena, ((size_t)node.gpu_count + 1) * sizeof(struct gpu));
    if (!inventory->gpus)
        return why_set(why, ENOMEM, "out of memory");
    for (int i = 0; i < node.gpu_count; i++) {
        struct gpu *g = &inventory->gpus[i];
        struct reader_gpu now;
        int64_t mig = 0;

        if (reader_gpu(m->reader, i, &now) < 0)
            break; /* a new configuration has fewer */
        inventory->count++;
        g->lost = now.lost;
        g->minor = minors ? (int)read_number(m, (size_t)i, "minor_number") : -1;
        snprintf(g->uuid, sizeof(g->uuid), "%s", now.uuid);
        if (metric_read(&now.sample, METRIC_MIG_MODE, &mig) == 0 && mig &&
            read_migs(m, (size_t)i, g, arena) < 0)
            return why_set(why, ENOMEM, "out of memory");
    }
    return 0;
}

/* --- workloads that are there ---------------------------------------------------------------- */

/* One of its names; "" when it has none. NULL: it is gone, or out of memory. */
static const char *read_name(struct mount *m, const char *name, const char *file,
                             struct arena *arena)
{
    char value[VALUE_BYTES];
    int n = read_file(m, name, file, value);

    if (n < 0)
        return NULL;
    return strcmp(value, "-") ? arena_strndup(arena, value, (size_t)n) : "";
}

static bool ended_by_loss(struct mount *m, const char *name)
{
    char state[VALUE_BYTES];

    return read_file(m, name, "state", state) > 0 && !strncmp(state, "ended ", 6) &&
           strstr(state, " is lost");
}

/* False when it is gone. */
static bool read_workload(struct mount *m, const char *name, struct present *p, struct arena *arena)
{
    *p = (struct present){
        .name = arena_strndup(arena, name, strlen(name)),
        .who = { read_name(m, name, "namespace", arena), read_name(m, name, "pod", arena),
                 read_name(m, name, "container", arena) },
    };
    if (!p->name || !p->who.namespace || !p->who.pod || !p->who.container)
        return false;
    p->gpu_lost = plan_is_ours(p) && ended_by_loss(m, name);
    return true;
}

/* What is not one of ours and names nobody has nothing to say to the plan, unless its name does. */
static bool matters(const struct present *p)
{
    return *p->who.pod || !strncmp(p->name, PLAN_PREFIX, strlen(PLAN_PREFIX));
}

static int grow(struct present_list *list, size_t *room)
{
    size_t more = *room ? *room * 2 : 64;
    struct present *items = realloc(list->items, more * sizeof(*items));

    if (!items)
        return -ENOMEM;
    list->items = items;
    *room = more;
    return 0;
}

int mount_read_workloads(struct mount *m, struct present_list *present, struct arena *arena,
                         struct why *why)
{
    char *path = path_of(m, "");
    DIR *dir = path ? opendir(path) : NULL;
    struct present_list list = { 0 };
    const struct dirent *entry;
    size_t room = 0;
    int r = dir ? 0 : -errno;

    while (r == 0 && (entry = readdir(dir))) {
        if (*entry->d_name == '.')
            continue;
        if (list.count == room)
            r = grow(&list, &room);
        if (r == 0 && read_workload(m, entry->d_name, &list.items[list.count], arena))
            list.count += matters(&list.items[list.count]);
    }
    *present = (struct present_list){ .count = list.count };
    present->items = arena_alloc(arena, (list.count + 1) * sizeof(*list.items));
    if (!present->items)
        r = -ENOMEM;
    else if (list.count)
        memcpy(present->items, list.items, list.count * sizeof(*list.items));
    if (dir)
        closedir(dir);
    free(list.items);
    free(path);
    return r < 0 ? why_set(why, -r, "cannot read %s/workloads: %s", m->root, strerror(-r)) : 0;
}

/* --- operations ------------------------------------------------------------------------------ */

int mount_remove(struct mount *m, const char *name, struct why *why)
{
    char *path = path_of(m, name);
    int err = !path ? ENOMEM : rmdir(path) < 0 && errno != ENOENT ? errno : 0;

    free(path);
    return err ? why_set(why, err, "cannot remove the workload '%s': %s", name, strerror(err)) : 0;
}

static int make(struct mount *m, const char *name, struct why *why)
{
    char *path = path_of(m, name), reason[VALUE_BYTES];
    int err = !path ? ENOMEM : mkdir(path, 0755) < 0 ? errno : 0;

    free(path);
    if (!err)
        return 0;
    if (err == ENOSPC && reader_text(m->reader, "control/last_error", reason, sizeof(reason)) > 0)
        return why_set(why, err, "cannot make the workload '%s': %s", name, reason);
    return why_set(why, err, "cannot make the workload '%s': %s", name, strerror(err));
}

/* With the mount's own sentence where it has one. */
static int set(struct mount *m, const char *name, const char *file, const char *text,
               struct why *why)
{
    int r = write_file(m, name, file, text);
    char reason[VALUE_BYTES];

    if (r == 0)
        return 0;
    if (read_file(m, name, "last_error", reason) < 0 || !strcmp(reason, "none"))
        snprintf(reason, sizeof(reason), "%s", strerror(-r));
    return why_set(why, -r, "workload '%s': %s '%s' is refused: %s", name, file, text, reason);
}

/* A number is percent. */
static void add_activity(struct text *out, const char *activity)
{
    char trimmed[32] = "";
    int64_t percent;

    if (parse_trim(activity, trimmed, sizeof(trimmed)) == 0 &&
        unit_parse(UNIT_PERCENT, trimmed, UNIT_BARE_SHOWN, &percent, NULL) == 0)
        text_addf(out, "[{utilization: %s}]", trimmed);
    else
        text_add(out, activity);
}

static int set_defaults(struct mount *m, const char *name, const struct defaults *defaults,
                        struct text *refused)
{
    struct text activity = TEXT_INIT;
    struct why why = { 0 };

    add_activity(&activity, defaults->activity);
    if (*defaults->memory && set(m, name, "memory", defaults->memory, &why) < 0)
        text_addf(refused, "%s\n", why_text(&why));
    if (activity.length && set(m, name, "activity", text_str(&activity), &why) < 0)
        text_addf(refused, "%s\n", why_text(&why));
    text_release(&activity);
    why_release(&why);
    return refused->failed ? -ENOMEM : 0;
}

/* Whose it is comes first: from then on it is known as ours. */
int mount_create(struct mount *m, const struct operation *o, const struct defaults *defaults,
                 struct text *refused, struct why *why)
{
    const struct {
        const char *file, *text;
    } parts[] = {
        { "namespace", o->who.namespace },
        { "pod", o->who.pod },
        { "container", o->who.container },
        { "devices", o->devices },
    };
    int r = make(m, o->name, why);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && r == 0; i++)
        r = set(m, o->name, parts[i].file, parts[i].text, why);
    if (r < 0) {
        mount_remove(m, o->name, NULL);
        return r;
    }
    return set_defaults(m, o->name, defaults, refused);
}
