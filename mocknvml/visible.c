/*
 * Visible: which GPUs and MIG devices this process may see. See visible.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/device_nodes.h"
#include "mocknvml/mig.h"

/* --- what the list names --------------------------------------------------------------------- */

enum { UUID_SHORTEST = 8 };

struct word {
    const char *text;
    size_t length;
};

static bool next_word(const char **list, struct word *word)
{
    if (!**list)
        return false;
    *word = (struct word){ *list, strcspn(*list, ",") };
    *list += word->length + ((*list)[word->length] == ',');
    return true;
}

static bool is_text(const struct word *word, const char *text)
{
    return strlen(text) == word->length && !strncmp(word->text, text, word->length);
}

static bool begins(const struct word *word, const char *uuid)
{
    return word->length >= UUID_SHORTEST && !strncmp(word->text, uuid, word->length);
}

static bool names_gpu(const struct word *word, int index, const char *uuid)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", index);
    return is_text(word, "all") || is_text(word, number) || begins(word, uuid);
}

static bool names_mig(const struct word *word, int index, const char *uuid,
                      const struct mig_name *m)
{
    char pair[32], triple[LENGTH_UUID + 32];

    snprintf(pair, sizeof(pair), "%d:%u", index, m->number);
    snprintf(triple, sizeof(triple), "MIG-%s/%d/%d", uuid, m->gi, m->ci);
    return is_text(word, pair) || is_text(word, triple) || begins(word, m->uuid);
}

static bool list_names_gpu(const char *list, int index, const char *uuid)
{
    struct word word;

    while (next_word(&list, &word))
        if (names_gpu(&word, index, uuid))
            return true;
    return false;
}

static bool list_names_mig(const char *list, int index, const char *uuid, const struct mig_name *m)
{
    struct word word;

    while (next_word(&list, &word))
        if (names_mig(&word, index, uuid, m))
            return true;
    return false;
}

/* Whether it names a MIG device of that GPU. */
static bool list_names_part(const char *list, struct reader *reader, int index, const char *uuid)
{
    char file[64];
    struct table t = { 0 };
    struct mig_name name;

    if (!strchr(list, ':') && !strstr(list, "MIG-"))
        return false;
    snprintf(file, sizeof(file), "gpus/%d/mig/instances", index);
    if (reader_text(reader, file, t.text, sizeof(t.text)) < 0)
        return false;
    t.rest = t.text;
    for (unsigned int number = 0; mig_next_name(&t, &number, &name);)
        if (list_names_mig(list, index, uuid, &name))
            return true;
    return false;
}

/* --- what may be seen -------------------------------------------------------------------------- */

static bool list_is_void(const char *list)
{
    return list && !strcmp(list, "void");
}

const char *visible_wanted(void)
{
    const char *said = getenv("NVIDIA_VISIBLE_DEVICES");

    if (said && *said)
        return said;
    return nodes_decide() ? "void" : NULL;
}

bool visible_gpu(struct reader *reader, const char *list, int index, const char *uuid)
{
    if (list_is_void(list))
        return nodes_have_gpu(reader, index);
    return !list || list_names_gpu(list, index, uuid) || list_names_part(list, reader, index, uuid);
}

bool visible_mig(struct reader *reader, const char *list, int index, const char *uuid,
                 const struct mig_name *name)
{
    if (list_is_void(list))
        return reader && nodes_have_mig(reader, index, name);
    return !list || list_names_gpu(list, index, uuid) || list_names_mig(list, index, uuid, name);
}
