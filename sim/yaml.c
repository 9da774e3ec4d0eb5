/*
 * Yaml: a document as a tree with positions. See yaml.h.
 *
 * The tree is built from libyaml's event stream with an explicit stack, so hostile nesting costs an
 * error and not the C stack.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/yaml.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "sim/text.h"
#include "sim/why.h"

enum {
    DEPTH_MAX = 32,      /* levels, aliases expanded */
    WEIGHT_MAX = 500000, /* nodes of one document, aliases expanded */
    WEIGHT_TEXT = 64,    /* so many bytes of a text count as a node */
    ANCHORS_MAX = 1024,
    KEYS_MAX = 4096,         /* of one mapping */
    COMPARED_MAX = 40000000, /* names with each other, in one document */
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
    size_t compared;  /* names, to find duplicate keys and anchors */
    const char *text; /* what was given, between the lines put before it and the tail */
    size_t length, lines_before, bytes_before;
    yaml_mark_t end; /* of what was given; lines and columns only */
};

/* --- positions and refusals ------------------------------------------------------------------ */

/* Where the byte at `offset` of the text stands. A column is a character, not a byte. */
static yaml_mark_t mark_of(const struct loader *l, size_t offset)
{
    yaml_mark_t mark = { 0 };

    for (size_t i = 0; i < offset && i < l->length; i++) {
        if (l->text[i] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if ((l->text[i] & 0xc0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

/* A mark of the parser as a place in the text that was given. */
static yaml_mark_t place(const struct loader *l, yaml_mark_t mark)
{
    if (!l->lines_before)
        return mark;
    mark.line -= mark.line < l->lines_before ? mark.line : l->lines_before;
    return mark.line > l->end.line ? l->end : mark;
}

/* "name:line:column: sentence" about a mark of the parser. Returns -err. */
static int __attribute__((format(printf, 4, 5)))
refuse(struct loader *l, int err, yaml_mark_t mark, const char *fmt, ...)
{
    struct text sentence = TEXT_INIT;
    va_list ap;
    int r;

    mark = place(l, mark);
    va_start(ap, fmt);
    text_vaddf(&sentence, fmt, ap);
    va_end(ap);
    r = why_set(l->why, err, "%s:%zu:%zu: %s", l->doc->name, mark.line + 1, mark.column + 1,
                text_str(&sentence));
    text_release(&sentence);
    return r;
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
    mark = place(l, mark);
    n->kind = kind;
    n->line = (int)mark.line + 1;
    n->column = (int)mark.column + 1;
    n->weight = 1;
    n->height = kind != YNODE_SCALAR;
    return n;
}

static int anchor_add(struct loader *l, const yaml_char_t *name, struct ynode *node,
                      yaml_mark_t mark)
{
    struct anchor *a;

    if (!name)
        return 0;
    if (l->anchor_count == ANCHORS_MAX)
        return refuse(l, E2BIG, mark, "a document has at most %d anchors", ANCHORS_MAX);
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
        return refuse(l, E2BIG, mark, "a mapping has at most %d keys", KEYS_MAX);
    l->compared += map->count;
    if (l->compared > COMPARED_MAX)
        return refuse(l, E2BIG, mark, "there are too many keys in large mappings");
    for (size_t i = 0; i < map->count; i++)
        if (!strcmp(map->keys[i]->text, key->text))
            return refuse(l, EINVAL, mark, "duplicate key %s, first given at line %d",
                          ynode_describe(&l->doc->arena, key), map->keys[i]->line);
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
    if (f->node->height <= node->height)
        f->node->height = node->height + 1;
    f->key = NULL;
    if (f->node->weight > WEIGHT_MAX)
        return refuse(l, E2BIG, mark, "the document has more than %d values", WEIGHT_MAX);
    return 0;
}

static int refuse_depth(struct loader *l, yaml_mark_t mark)
{
    return refuse(l, E2BIG, mark, "nested too deeply; allowed: %d levels", DEPTH_MAX);
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
    n->weight += ev->data.scalar.length / WEIGHT_TEXT;
    n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    r = anchor_add(l, ev->data.scalar.anchor, n, ev->start_mark);
    return r < 0 ? r : attach(l, n, ev->start_mark);
}

static int take_alias(struct loader *l, const yaml_event_t *ev)
{
    const char *name = (const char *)ev->data.alias.anchor;

    l->compared += (size_t)l->anchor_count;
    if (l->compared > COMPARED_MAX)
        return refuse(l, E2BIG, ev->start_mark, "there are too many aliases");
    /* The newest anchor of a name wins, as YAML says. */
    for (int i = l->anchor_count - 1; i >= 0; i--) {
        struct ynode *node = l->anchors[i].node;

        if (strcmp(l->anchors[i].name, name))
            continue;
        if (l->depth + node->height > DEPTH_MAX)
            return refuse_depth(l, ev->start_mark);
        return attach(l, node, ev->start_mark);
    }
    return refuse(l, EINVAL, ev->start_mark, "no anchor '&%s' stands before this alias", name);
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
        return refuse_depth(l, ev->start_mark);
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

/* The bytes were refused before the scanner saw them: the parser knows only how many came before. */
static int refuse_bytes(struct loader *l)
{
    size_t before = l->bytes_before, offset = l->parser.problem_offset;
    yaml_mark_t mark = mark_of(l, offset > before ? offset - before : 0);

    return why_set(l->why, EINVAL, "%s:%zu:%zu: %s", l->doc->name, mark.line + 1, mark.column + 1,
                   l->parser.problem);
}

static int refuse_syntax(struct loader *l)
{
    const yaml_parser_t *p = &l->parser;
    const char *problem = p->problem ? p->problem : "it cannot be read";
    const char *context = p->context ? p->context : "";
    yaml_mark_t at = p->problem_mark, from = p->context_mark;

    if (p->error == YAML_MEMORY_ERROR)
        return out_of_memory(l);
    if (p->error == YAML_READER_ERROR)
        return refuse_bytes(l);
    if (!strcmp(context, "while scanning a simple key"))
        at = from; /* a word where `key:` should be: the parser notices only at the next one */
    if (*context && place(l, from).line != place(l, at).line)
        return refuse(l, EINVAL, at, "not valid YAML: %s %s that begins at line %zu", problem,
                      context, place(l, from).line + 1);
    return refuse(l, EINVAL, at, "not valid YAML: %s%s%s", problem, *context ? " " : "", context);
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

/* The loader knows where the text lies in the input. */
static int parse_input(struct loader *l, const char *input, size_t length)
{
    int r;

    if (!yaml_parser_initialize(&l->parser))
        return out_of_memory(l);
    yaml_parser_set_input_string(&l->parser, (const unsigned char *)input, length);
    r = load(l);
    yaml_parser_delete(&l->parser);
    if (r < 0)
        ydoc_release(l->doc);
    return r;
}

int ydoc_parse(struct ydoc *doc, const char *name, const char *text, size_t length, struct why *why)
{
    struct loader l = { .doc = doc, .why = why, .text = text, .length = length };

    *doc = (struct ydoc){ .name = name };
    return parse_input(&l, text, length);
}

int ydoc_parse_between(struct ydoc *doc, const char *name, const char *line, const char *text,
                       const char *tail, struct why *why)
{
    struct loader l = { .doc = doc,
                        .why = why,
                        .text = text,
                        .length = strlen(text),
                        .lines_before = 1,
                        .bytes_before = strlen(line) + 1 };
    struct text input = TEXT_INIT;
    int r;

    *doc = (struct ydoc){ .name = name };
    while (l.length && isspace((unsigned char)text[l.length - 1]))
        l.length--; /* nothing is wrong with blanks */
    l.end = mark_of(&l, l.length);
    text_addf(&input, "%s\n%s\n%s", line, text, tail);
    r = input.failed ? out_of_memory(&l) : parse_input(&l, text_str(&input), input.length);
    text_release(&input);
    return r;
}

void ydoc_release(struct ydoc *doc)
{
    arena_release(&doc->arena);
    doc->root = NULL;
}

/* Where `key` is in a map, or -1. */
static ptrdiff_t key_index(const struct ynode *map, const char *key)
{
    for (size_t i = 0; map && map->kind == YNODE_MAP && i < map->count; i++)
        if (!strcmp(map->keys[i]->text, key))
            return (ptrdiff_t)i;
    return -1;
}

const struct ynode *ynode_get(const struct ynode *map, const char *key)
{
    ptrdiff_t i = key_index(map, key);

    return i < 0 ? NULL : map->items[i];
}

const struct ynode *ynode_key(const struct ynode *map, const char *key)
{
    ptrdiff_t i = key_index(map, key);

    return i < 0 ? NULL : map->keys[i];
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
    for (char *p = s; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = '?'; /* a sentence stays on its line */
    return s;
}
