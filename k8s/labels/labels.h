/*
 * Labels: lists of them, and how they are written as text.
 *
 * Texts are borrowed or in the arena that a list was made in.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_LABELS_LABELS_H
#define K8S_LABELS_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/arena.h"
#include "sim/text.h"
#include "sim/why.h"

struct label {
    const char *key, *value;
};

/* No key is in it twice. */
struct label_list {
    struct label *items;
    size_t count;
};

/* One with room for `count`, and nothing in it yet. 0 or -ENOMEM. */
int labels_new(struct label_list *list, size_t count, struct arena *arena);

/* Whether it can be a part of a label and of a line: no blanks, nothing unprintable. Kubernetes allows even less. */
bool label_is_plain(const char *text);

/* There must be room. */
void labels_add(struct label_list *list, const char *key, const char *value);

/* The value of a key; NULL: it has none. */
const char *labels_find(const struct label_list *list, const char *key);

/*
 * Reads lines `key=value` with room for `more` besides. `where` is their file, for sentences. -EPROTO when a line is
 * something else or a key comes twice; -ENOMEM.
 */
int labels_parse(struct label_list *list, const char *text, size_t more, const char *where,
                 struct arena *arena, struct why *why);

/* A note of them in one line, `key=value,key=value`; and back. What is no label in it is left out. 0 or -ENOMEM. */
void labels_note(struct text *out, const struct label_list *list);
int labels_read_note(struct label_list *list, const char *note, struct arena *arena);

#endif
