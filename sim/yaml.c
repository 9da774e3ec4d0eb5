/*
 * Yaml: a document as a tree with positions. See yaml.h.
 *
 * The tree is built from libyaml's event stream with an explicit stack, so hostile nesting costs an
 * error and not the C stack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "sim/why.h"

enum {
    DEPTH_MAX = 32,
    WEIGHT_MAX = 500000, /* nodes of one document, aliases expanded */
    ANCHORS_MAX = 1024,
    KEYS_MAX = 4096, /* of one mapping */
};

/* A collection whose end has not been read yet. */
struct frame {
    struct ynode *node;
    struct ynode *key; /* map: the key that waits for its value */
    size_t room;
};

struct anchor {
    const char *name;
    struct ynode *node;
};

struct loader {
    struct ydoc *doc;
    struct why *why;
    yaml_parser_t parser;
    struct frame stack[DEPTH_MAX];
    int depth;
    struct anchor anchors[ANCHORS_MAX];
    int anchor_count;
};

static int refuse(struct loader *l, int err, yaml_mark_t mark, const char *problem)
{
    return why_set(l->why, err, "%s:%zu:%zu: %s", l->doc->name, mark.line + 1, mark.column + 1,
                   problem);
}

static int out_of_memory(struct loader *l)
{
    return why_set(l->why, ENOMEM, "%s: out of memory", l->doc->name);
}

static struct ynode *node_new(struct loader *l, enum ynode_kind kind, yaml_mark_t mark)
{
    struct ynode *n = arena_alloc(&l->doc->arena, sizeof(*n));

    if (!n)
        return NULL;
    n->kind = kind;
    n->line = (int)mark.line + 1;
    n->column = (int)mark.column + 1;
    n->weight = 1;
    return n;
}

static int anchor_add(struct loader *l, const yaml_char_t *name, struct ynode *node,
                      yaml_mark_t mark)
{
    struct anchor *a;

    if (!name)
        return 0;
    if (l->anchor_count == ANCHORS_MAX)
        return refuse(l, E2BIG, mark, "too many anchors");
    a = &l->anchors[l->anchor_count++];
    a->name = arena_strndup(&l->doc->arena, (const char *)name, strlen((const char *)name));
    a->node = node;
    return a->name ? 0 : out_of_memory(l);
}

static int frame_grow(struct loader *l, struct frame *f)
{
    size_t room = f->room ? 2 * f->room : 4;
    struct ynode **items = arena_alloc(&l->doc->arena, room * sizeof(struct ynode *));
    struct ynode **keys = arena_alloc(&l->doc->arena, room * sizeof(struct ynode *));

    if (!items || !keys)
        return out_of_memory(l);
    if (f->node->count) {
        memcpy(items, f->node->items, f->node->count * sizeof(struct ynode *));
        memcpy(keys, f->node->keys, f->node->count * sizeof(struct ynode *));
    }
    f->node->items = items;
    f->node->keys = keys;
    f->room = room;
    return 0;
}

static int take_key(struct loader *l, struct frame *f, struct ynode *key, yaml_mark_t mark)
{
    const struct ynode *map = f->node;

    if (key->kind != YNODE_SCALAR)
        return refuse(l, EINVAL, mark, "a key must be plain text");
    if (map->count == KEYS_MAX)
        return refuse(l, E2BIG, mark, "a mapping with too many keys");
    for (size_t i = 0; i < map->count; i++)
        if (!strcmp(map->keys[i]->text, key->text))
            return why_set(l->why, EINVAL, "%s:%d:%d: duplicate key '%s', first given at line %d",
                           l->doc->name, key->line, key->column, key->text, map->keys[i]->line);
    f->key = key;
    return 0;
}

/* Puts a finished node where it belongs: root, list item, key or value. */
static int attach(struct loader *l, struct ynode *node, yaml_mark_t mark)
{
    struct frame *f;
    int r;

    if (!l->depth) {
        l->doc->root = node;
        return 0;
    }
    f = &l->stack[l->depth - 1];
    if (f->node->kind == YNODE_MAP && !f->key)
        return take_key(l, f, node, mark);
    if (f->node->count == f->room) {
        r = frame_grow(l, f);
        if (r < 0)
            return r;
    }
    f->node->keys[f->node->count] = f->key;
    f->node->items[f->node->count++] = node;
    f->node->weight += node->weight;
    f->key = NULL;
    if (f->node->weight > WEIGHT_MAX)
        return refuse(l, E2BIG, mark, "the document is too large");
    return 0;
}

static int take_scalar(struct loader *l, const yaml_event_t *ev)
{
    struct ynode *n = node_new(l, YNODE_SCALAR, ev->start_mark);
    int r;

    if (!n)
        return out_of_memory(l);
    if (ev->data.scalar.tag)
        return refuse(l, EINVAL, ev->start_mark, "tags are not allowed");
    if (memchr(ev->data.scalar.value, '\0', ev->data.scalar.length))
        return refuse(l, EINVAL, ev->start_mark, "a NUL character is not allowed");
    n->text = arena_strndup(&l->doc->arena, (const char *)ev->data.scalar.value,
                            ev->data.scalar.length);
    if (!n->text)
        return out_of_memory(l);
    n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    r = anchor_add(l, ev->data.scalar.anchor, n, ev->start_mark);
    return r < 0 ? r : attach(l, n, ev->start_mark);
}

static int take_alias(struct loader *l, const yaml_event_t *ev)
{
    const char *name = (const char *)ev->data.alias.anchor;

    /* The newest anchor of a name wins, as YAML says. */
    for (int i = l->anchor_count - 1; i >= 0; i--)
        if (!strcmp(l->anchors[i].name, name))
            return attach(l, l->anchors[i].node, ev->start_mark);
    return why_set(l->why, EINVAL, "%s:%zu:%zu: no anchor '&%s' stands before this alias",
                   l->doc->name, ev->start_mark.line + 1, ev->start_mark.column + 1, name);
}

static int open_collection(struct loader *l, const yaml_event_t *ev)
{
    bool list = ev->type == YAML_SEQUENCE_START_EVENT;
    const yaml_char_t *tag = list ? ev->data.sequence_start.tag : ev->data.mapping_start.tag;
    struct ynode *n = node_new(l, list ? YNODE_LIST : YNODE_MAP, ev->start_mark);

    if (!n)
        return out_of_memory(l);
    if (tag)
        return refuse(l, EINVAL, ev->start_mark, "tags are not allowed");
    if (l->depth == DEPTH_MAX)
        return refuse(l, E2BIG, ev->start_mark, "nested too deeply");
    /* A key must be known to be text before the map it would open is read. */
    if (l->depth && l->stack[l->depth - 1].node->kind == YNODE_MAP && !l->stack[l->depth - 1].key)
        return refuse(l, EINVAL, ev->start_mark, "a key must be plain text");
    l->stack[l->depth++] = (struct frame){ .node = n };
    return 0;
}

/*
 * An anchor of a collection becomes usable when the collection ends, so that an alias can never make
 * the tree contain itself. libyaml gives the name at the start; it waits in the frame's node text.
 */
static int close_collection(struct loader *l, const yaml_event_t *ev)
{
    struct ynode *n = l->stack[--l->depth].node;
    const char *anchor = n->text;
    int r;

    n->text = NULL;
    r = anchor_add(l, (const yaml_char_t *)anchor, n, ev->start_mark);
    return r < 0 ? r : attach(l, n, ev->start_mark);
}

static int keep_anchor_name(struct loader *l, const yaml_char_t *name)
{
    struct ynode *n = l->stack[l->depth - 1].node;

    if (!name)
        return 0;
    n->text = arena_strndup(&l->doc->arena, (const char *)name, strlen((const char *)name));
    return n->text ? 0 : out_of_memory(l);
}

static int take_event(struct loader *l, const yaml_event_t *ev)
{
    int r;

    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        return l->doc->root ? refuse(l, EINVAL, ev->start_mark, "only one document is allowed") : 0;
    case YAML_SCALAR_EVENT:
        return take_scalar(l, ev);
    case YAML_ALIAS_EVENT:
        return take_alias(l, ev);
    case YAML_SEQUENCE_START_EVENT:
        r = open_collection(l, ev);
        return r < 0 ? r : keep_anchor_name(l, ev->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        r = open_collection(l, ev);
        return r < 0 ? r : keep_anchor_name(l, ev->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_collection(l, ev);
    default:
        return 0;
    }
}

static int refuse_syntax(struct loader *l)
{
    const yaml_parser_t *p = &l->parser;
    const char *problem = p->problem ? p->problem : "not valid YAML";

    if (p->error == YAML_MEMORY_ERROR)
        return out_of_memory(l);
    if (p->error == YAML_READER_ERROR) /* no mark: the bytes were refused before the scanner */
        return why_set(l->why, EINVAL, "%s:%zu:%zu: %s", l->doc->name, p->mark.line + 1,
                       p->mark.column + 1, problem);
    return why_set(l->why, EINVAL, "%s:%zu:%zu: not valid YAML: %s%s%s", l->doc->name,
                   p->problem_mark.line + 1, p->problem_mark.column + 1, problem,
                   p->context ? " " : "", p->context ? p->context : "");
}

static int load(struct loader *l)
{
    yaml_event_t ev;
    bool end = false;
    int r = 0;

    while (!end && r == 0) {
        if (!yaml_parser_parse(&l->parser, &ev))
            return refuse_syntax(l);
        end = ev.type == YAML_STREAM_END_EVENT;
        r = take_event(l, &ev);
        yaml_event_delete(&ev);
    }
    return r;
}

int ydoc_parse(struct ydoc *doc, const char *name, const char *text, size_t length, struct why *why)
{
    struct loader l = { .doc = doc, .why = why };
    int r;

    *doc = (struct ydoc){ .name = name };
    if (!yaml_parser_initialize(&l.parser))
        return out_of_memory(&l);
    yaml_parser_set_input_string(&l.parser, (const unsigned char *)text, length);
    r = load(&l);
    yaml_parser_delete(&l.parser);
    if (r < 0)
        ydoc_release(doc);
    return r;
}

void ydoc_release(struct ydoc *doc)
{
    arena_release(&doc->arena);
    doc->root = NULL;
}

const struct ynode *ynode_get(const struct ynode *map, const char *key)
{
    for (size_t i = 0; map && map->kind == YNODE_MAP && i < map->count; i++)
        if (!strcmp(map->keys[i]->text, key))
            return map->items[i];
    return NULL;
}

bool ynode_is_null(const struct ynode *node)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

    if (!node)
        return true;
    if (node->kind != YNODE_SCALAR || node->quoted)
        return false;
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
        if (!strcmp(node->text, nulls[i]))
            return true;
    return false;
}

const char *ynode_describe(struct arena *arena, const struct ynode *node)
{
    enum { SHOWN = 60 };
    size_t n;
    char *s;

    if (node->kind == YNODE_LIST)
        return "a list";
    if (node->kind == YNODE_MAP)
        return "a mapping";
    if (ynode_is_null(node))
        return "nothing";
    n = strnlen(node->text, SHOWN + 1);
    if (n > SHOWN)
        for (n = SHOWN; n && (node->text[n] & 0xc0) == 0x80; n--)
            ; /* never cut a character in two */
    s = arena_alloc(arena, SHOWN + 8);
    if (!s)
        return "a value";
    snprintf(s, SHOWN + 8, node->text[n] ? "'%.*s…'" : "'%.*s'", (int)n, node->text);
    return s;
}
