/*
 * Changes: what a command writes to a mount, so that it can be taken back. See changes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct change {
    char *path; /* owned */
    char *text; /* owned; NULL: a directory that was made */
};

bool changes_has(const struct changes *c, const char *path)
{
    for (size_t i = 0; i < c->count; i++)
        if (!strcmp(c->items[i].path, path))
            return true;
    return false;
}

/* Takes the text over. */
static int add(struct changes *c, const char *path, char *text)
{
    struct change *more = realloc(c->items, (c->count + 1) * sizeof(*more));
    char *copy = strdup(path);

    if (more)
        c->items = more;
    if (!more || !copy) {
        free(copy);
        free(text);
        return -ENOMEM;
    }
    c->items[c->count++] = (struct change){ copy, text };
    return 0;
}

int changes_made(struct changes *c, const char *dir)
{
    return c->forget || changes_has(c, dir) ? 0 : add(c, dir, NULL);
}

/* What belongs to a workload goes with it, and the clock is restored by who drives it. */
static bool need_not_keep(const char *path)
{
    return !strncmp(path, "workloads/", 10) || !strcmp(path, "control/clock");
}

static int remember(struct changes *c, const char *path)
{
    struct text held = TEXT_INIT;

    if (c->forget || need_not_keep(path) || changes_has(c, path))
        return 0;
    if (drive_peek(c->client, &held, path) < 0 || !held.data) {
        text_release(&held);
        return 0; /* the write will say what is wrong */
    }
    return add(c, path, held.data);
}

int changes_put(struct changes *c, const char *path, const char *text, struct why *why)
{
    int r = remember(c, path);

    return r < 0 ? why_set(why, -r, "out of memory") : client_put(c->client, path, text, why);
}

int changes_put_gpu(struct changes *c, int gpu, const char *file, const char *text, struct why *why)
{
    struct text path = TEXT_INIT;
    int r;

    text_addf(&path, "gpus/%d/control/%s", gpu, file);
    r = changes_put(c, text_str(&path), text, why);
    text_release(&path);
    return r;
}

/* --- taking back ----------------------------------------------------------------------------- */

static bool is_fault(const struct change *change)
{
    static const char end[] = "/control/fault";
    size_t n = strlen(change->path);

    return n > sizeof(end) && !strcmp(change->path + n - (sizeof(end) - 1), end);
}

/* A GPU that had no fault is reset. One that had some cannot be given them back as they were. */
static int restore_fault(struct changes *c, const struct change *change, struct why *why)
{
    struct text now = TEXT_INIT;
    int r = drive_peek(c->client, &now, change->path);
    bool same = r == 0 && !strcmp(text_str(&now), change->text);

    text_release(&now);
    if (r < 0 || same)
        return r;
    if (strcmp(change->text, "none"))
        return why_set(why, EBUSY, "it had a fault before");
    return client_put(c->client, change->path, "recover", why);
}

static int restore(struct changes *c, const struct change *change, struct why *why)
{
    if (!change->text)
        return drive_exists(c->client, change->path) ? client_remove(c->client, change->path, why)
                                                     : 0;
    if (is_fault(change))
        return restore_fault(c, change, why);
    return client_put(c->client, change->path, change->text, why);
}

/* Faults first: a GPU that is lost takes nothing else. Otherwise the last change comes first. */
void changes_restore(struct changes *c, void (*remark)(void *whom, const char *sentence),
                     void *whom)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = c->count; i-- > 0;) {
            struct text said = TEXT_INIT;
            struct why why = { 0 };
            int r = 0;

            if (is_fault(&c->items[i]) == (pass == 0))
                r = restore(c, &c->items[i], &why);
            if (r < 0 && !client_is_lost(r)) {
                text_addf(&said, "%s is not restored: %s", c->items[i].path, why_text(&why));
                remark(whom, text_str(&said));
            }
            text_release(&said);
            why_release(&why);
        }
}

void changes_release(struct changes *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->items[i].path);
        free(c->items[i].text);
    }
    free(c->items);
    c->items = NULL;
    c->count = 0;
}
