/*
 * Node: the API server's JSON of a node, as far as labels go. See node.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/labels/node.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* --- reading --------------------------------------------------------------------------------- */

static int take_labels(struct label_list *list, json_t *labels, struct arena *arena)
{
    const char *key;
    json_t *value;
    int r = labels_new(list, json_object_size(labels), arena);

    if (r < 0)
        return r;
    json_object_foreach(labels, key, value)
    {
        const char *own = arena_strndup(arena, key, strlen(key));
        const char *text = json_is_string(value) ? arena_strndup(arena, json_string_value(value),
                                                                 json_string_length(value))
                                                 : NULL;

        if (!json_is_string(value))
            return -EPROTO;
        if (!own || !text)
            return -ENOMEM;
        if (!label_is_plain(own) || !label_is_plain(text))
            return -EPROTO;
        labels_add(list, own, text);
    }
    return 0;
}

/* A text member of an object; NULL when it has none. */
static int take_text(const char **text, json_t *object, const char *key, struct arena *arena)
{
    json_t *value = json_object_get(object, key);

    *text = NULL;
    if (!value)
        return 0;
    if (!json_is_string(value))
        return -EPROTO;
    *text = arena_strndup(arena, json_string_value(value), json_string_length(value));
    return *text ? 0 : -ENOMEM;
}

/* An object that may be left out. */
static bool is_map(json_t *value)
{
    return !value || json_is_object(value) || json_is_null(value);
}

static int take_node(struct node *node, const char *name, json_t *root, struct arena *arena)
{
    json_t *metadata = json_object_get(root, "metadata");
    json_t *labels = json_object_get(metadata, "labels");
    json_t *annotations = json_object_get(metadata, "annotations");
    const char *found = json_string_value(json_object_get(metadata, "name"));
    int r;

    if (!found || strcmp(found, name) || !is_map(labels) || !is_map(annotations))
        return -EPROTO;
    r = take_labels(&node->labels, labels, arena);
    if (r == 0)
        r = take_text(&node->version, metadata, "resourceVersion", arena);
    if (r == 0)
        r = take_text(&node->note, annotations, NODE_NOTE, arena);
    return r < 0 ? r : labels_read_note(&node->ours, node->note ? node->note : "", arena);
}

int node_read(struct node *node, const char *name, const char *json, size_t length,
              struct arena *arena, struct why *why)
{
    json_error_t error;
    json_t *root = json_loadb(json, length, JSON_REJECT_DUPLICATES, &error);
    int r = root ? take_node(node, name, root, arena) : -EPROTO;

    if (!root)
        why_set(why, EPROTO, "the answer is not JSON: line %d: %s", error.line, error.text);
    else if (r == -EPROTO)
        why_set(why, EPROTO, "the answer is not the node '%s'", name);
    else if (r < 0)
        why_set(why, -r, "out of memory");
    json_decref(root);
    return r;
}

void node_read_status(struct text *out, const char *json, size_t length)
{
    json_error_t error;
    json_t *root = json_loadb(json, length, 0, &error);
    const char *message = json_string_value(json_object_get(root, "message"));

    if (message)
        text_add(out, message);
    json_decref(root);
}

/* --- writing --------------------------------------------------------------------------------- */

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *changed_labels(const struct plan *plan)
{
    json_t *labels = json_object();

    for (size_t i = 0; i < plan->count; i++)
        if (json_object_set_new(labels, plan->items[i].key, text_or_null(plan->items[i].value)) <
            0) {
            json_decref(labels);
            return NULL;
        }
    return labels;
}

/* `note`: NULL when there is to be none. Steals `labels`. */
static json_t *make_patch(const struct node *node, json_t *labels, const char *note)
{
    json_t *metadata = json_object(), *annotations = json_object(), *patch = json_object();
    int r = json_object_set_new(metadata, "labels", labels);

    if (r == 0 && node->version)
        r = json_object_set_new(metadata, "resourceVersion", json_string(node->version));
    if (r == 0)
        r = json_object_set_new(annotations, NODE_NOTE, text_or_null(note));
    if (r == 0)
        r = json_object_set(metadata, "annotations", annotations);
    if (r == 0)
        r = json_object_set(patch, "metadata", metadata);
    json_decref(annotations);
    json_decref(metadata);
    if (r == 0)
        return patch;
    json_decref(patch);
    return NULL;
}

static bool is_noted(const struct node *node, const char *note)
{
    return node->note && note ? !strcmp(node->note, note) : !node->note && !note;
}

int node_patch(struct text *out, const struct node *node, const struct plan *plan)
{
    struct text note = TEXT_INIT;
    const char *noted;
    json_t *patch;
    char *json;

    labels_note(&note, &plan->ours);
    noted = note.length ? text_str(&note) : NULL;
    if (!note.failed && !plan->count && is_noted(node, noted)) {
        text_release(&note);
        return 0;
    }
    patch = note.failed ? NULL : make_patch(node, changed_labels(plan), noted);
    json = json_dumps(patch, JSON_COMPACT | JSON_SORT_KEYS);
    text_add(out, json ? json : "");
    free(json);
    json_decref(patch);
    text_release(&note);
    return !json || out->failed ? -ENOMEM : 1;
}
