/*
 * Template: the value of a label as an identity writes it. See template.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/template.h"

#include <errno.h>
#include <string.h>

#include "sim/bind.h"
#include "sim/suggest.h"

const char *variable_name_at(const void *unused, int i)
{
    static const char *const names[] = {
#define IDENTITY(id, file, ...) file,
#include "sim/metrics.def"
#define VARIABLE(id, name, help) name,
        VARIABLE_TABLE(VARIABLE)
#undef VARIABLE
    };

    (void)unused;
    return i < VARIABLE_COUNT ? names[i] : NULL;
}

static int variable_find(const char *name)
{
    for (int i = 0; i < VARIABLE_COUNT; i++)
        if (!strcmp(variable_name_at(NULL, i), name))
            return i;
    return -1;
}

static int unknown_variable(struct binder *b, const struct ynode *node, const char *name)
{
    struct text hint = TEXT_INIT;
    int r;

    suggest_add(&hint, name, variable_name_at, NULL);
    r = bind_refuse(b, EINVAL, node, "'%s' is not a variable%s", name, text_str(&hint));
    text_release(&hint);
    return r;
}

/* "{name}" at `*at`, which is moved behind it. */
static int read_variable(struct binder *b, const struct ynode *node, const char **at,
                         struct template_part *part)
{
    const char *name = *at + 1, *end = strchr(name, '}'), *copy;
    int variable;

    if (!end)
        return bind_refuse(b, EINVAL, node, "a '{' is not closed; a doubled brace is a brace");
    copy = arena_strndup(b->arena, name, (size_t)(end - name));
    if (!copy)
        return bind_out_of_memory(b);
    variable = variable_find(copy);
    if (variable < 0)
        return unknown_variable(b, node, copy);
    part->variable = (enum variable)variable;
    *at = end + 1;
    return 0;
}

static int read_literal(struct binder *b, const struct ynode *node, const char **at,
                        struct template_part *part)
{
    const char *text = *at;
    size_t n = strcspn(text, "{}");

    if (n == 0) { /* a doubled brace; whoever called has seen that it is no variable */
        if (text[1] != *text)
            return bind_refuse(b, EINVAL, node, "a '}' stands alone; a doubled brace is a brace");
        n = 1;
        *at = text + 2;
    } else {
        *at = text + n;
    }
    part->variable = VARIABLE_LITERAL;
    part->literal = arena_strndup(b->arena, text, n);
    return part->literal ? 0 : bind_out_of_memory(b);
}

int template_read(struct binder *b, const struct ynode *node, struct template *t)
{
    struct template_part *parts;
    const char *at = node->text;
    int r = 0;

    if (node->kind != YNODE_SCALAR)
        return bind_expected(b, node, "a text with {variables}");
    parts = arena_alloc(b->arena, (strlen(at) + 1) * sizeof(*parts));
    if (!parts)
        return bind_out_of_memory(b);
    *t = (struct template){ .parts = parts };
    for (; r == 0 && *at; t->count++) {
        struct template_part *part = &parts[t->count];

        r = *at == '{' && at[1] != '{' ? read_variable(b, node, &at, part)
                                       : read_literal(b, node, &at, part);
    }
    return r;
}

bool template_add(struct text *out, const struct template *t, template_lookup *lookup,
                  const void *context)
{
    for (size_t i = 0; i < t->count; i++) {
        const char *text = t->parts[i].variable == VARIABLE_LITERAL
                               ? t->parts[i].literal
                               : lookup(context, t->parts[i].variable);

        if (!text)
            return false;
        text_add(out, text);
    }
    return true;
}

bool template_is(const struct template *t, enum variable variable)
{
    return t->count == 1 && t->parts[0].variable == variable;
}

bool template_has(const struct template *t, enum variable variable)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->parts[i].variable == variable)
            return true;
    return false;
}
