/*
 * Config: refusals of what does not go together. See config_refuse.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_refuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct gpu_spec *override_with(const struct resolver *r, const struct gpu_entry *e,
                                     const char *key)
{
    const struct gpu_spec *overrides = r->cfg->overrides.items;

    for (size_t i = r->cfg->overrides.count; i-- > 0;)
        if (r->override_of[i] == e - r->entries && bind_is_set(&gpu_table, &overrides[i], key))
            return &overrides[i];
    return NULL;
}

/* "file:line:column: path.key: sentence" about the value of `key`, or about an item of that list. */
static int refuse_v(struct resolver *r, int err, const struct bind_head *head, const char *path,
                    const char *key, ptrdiff_t item, const char *fmt, va_list ap)
{
    struct bind_head at = bind_position(r->cfg->doc.root, head, key, (size_t)item);
    struct text sentence = TEXT_INIT;
    int result;

    text_addf(&sentence, "%s.%s", path, key);
    if (item >= 0)
        text_addf(&sentence, "[%td]", item);
    text_add(&sentence, ": ");
    text_vaddf(&sentence, fmt, ap);
    if (at.line)
        result = why_set(r->why, err, "%s:%d:%d: %s", r->cfg->source, at.line, at.column,
                         text_str(&sentence));
    else
        result = why_set(r->why, err, "%s: %s", r->cfg->source, text_str(&sentence));
    text_release(&sentence);
    return result;
}

/* "gpus[2]", or what the form with nodes calls it. */
static void add_gpu_path(struct text *path, const struct config *cfg, const struct gpu_spec *from)
{
    const struct ynode *gpus = ynode_get(cfg->doc.root, "gpus");
    const struct gpu_spec *first = cfg->gpus.items;
    ptrdiff_t i = from - first;

    while (cfg->nodes.count && first < from && strcmp(first->node, from->node))
        first++, i--; /* those of other nodes */
    if (cfg->nodes.count)
        text_addf(path, "nodes.%s.gpus[%td]", *from->node ? from->node : cfg->node, i);
    else if (gpus && gpus->kind == YNODE_LIST)
        text_addf(path, "gpus[%td]", i);
    else
        text_add(path, "gpus");
}

int refuse_gpu(struct resolver *r, int err, const struct gpu_entry *e, const char *key,
               const char *fmt, ...)
{
    const struct gpu_spec *over = override_with(r, e, key);
    const struct node_spec *node = over ? NULL : config_node_of(r->cfg, e->from);
    const struct bind_head *head = over ? &over->head : &e->from->head;
    struct text path = TEXT_INIT;
    va_list ap;
    int result;

    if (over) {
        text_addf(&path, "overrides.%s", over->key);
    } else if (node && !strcmp(key, "memory")) {
        text_addf(&path, "nodes.%s", node->key); /* it is said once for all of a node's GPUs */
        head = &node->head;
    } else {
        add_gpu_path(&path, r->cfg, e->from);
    }
    va_start(ap, fmt);
    result = refuse_v(r, err, head, text_str(&path), node ? node_spec_key(key) : key, NO_ITEM, fmt,
                      ap);
    va_end(ap);
    text_release(&path);
    return result;
}

int refuse_own_memory(struct resolver *r, int err, const struct gpu_entry *e, const char *fmt, ...)
{
    const struct gpu_spec *over = override_with(r, e, "workload");
    bool in_node = !over && config_node_of(r->cfg, e->from);
    struct text path = TEXT_INIT;
    va_list ap;
    int result;

    if (over)
        text_addf(&path, "overrides.%s", over->key);
    else
        add_gpu_path(&path, r->cfg, e->from);
    text_add(&path, in_node ? ".metrics" : ".workload");
    va_start(ap, fmt);
    result = refuse_v(r, err, &e->spec.workload.head, text_str(&path),
                      in_node ? "fb-used" : "memory", NO_ITEM, fmt, ap);
    va_end(ap);
    text_release(&path);
    return result;
}

int refuse_item(struct resolver *r, int err, const char *list, size_t i,
                const struct bind_head *head, const char *key, ptrdiff_t item, const char *fmt, ...)
{
    char path[64];
    va_list ap;
    int result;

    snprintf(path, sizeof(path), "%s[%zu]", list, i);
    va_start(ap, fmt);
    result = refuse_v(r, err, head, path, key, item, fmt, ap);
    va_end(ap);
    return result;
}

int refuse_out_of_memory(struct resolver *r)
{
    return why_set(r->why, ENOMEM, "%s: out of memory", r->cfg->source);
}
