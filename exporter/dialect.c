/*
 * Dialect: reading identities. See dialect.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/dialect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/library.h"
#include "sim/suggest.h"

/* --- labels ---------------------------------------------------------------------------------- */

static bool is_label_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

    return *name && strchr(first, *name) &&
           strspn(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") ==
               strlen(name);
}

static int read_labels(struct binder *b, const struct ynode *node, void *member)
{
    struct label_rules *rules = member;
    int r = 0;

    if (node->kind != YNODE_MAP)
        return bind_expected(b, node, "a mapping of names to texts");
    rules->items = arena_alloc(b->arena, (node->count + 1) * sizeof(*rules->items));
    if (!rules->items)
        return bind_out_of_memory(b);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        const char *name = node->keys[i]->text;
        size_t path = bind_enter(b, name);

        if (!is_label_name(name))
            return bind_refuse(b, EINVAL, node->keys[i],
                               "is no name for a label; allowed: letters, digits and _");
        r = template_read(b, node->items[i], &rules->items[i].value);
        rules->items[i].name = arena_strndup(b->arena, name, strlen(name));
        if (r == 0 && !rules->items[i].name)
            r = bind_out_of_memory(b);
        if (r == 0)
            bind_leave(b, path);
        rules->count++;
    }
    return r;
}

static const struct bind_custom labels_custom = {
    .read = read_labels,
    .schema =
        "\"type\": \"object\", \"propertyNames\": {\"pattern\": \"^[A-Za-z_][A-Za-z0-9_]*$\"}, "
        "\"additionalProperties\": {\"type\": [\"string\", \"number\", \"boolean\"]}",
};

/* --- tables ---------------------------------------------------------------------------------- */

static const char *const metric_names[] = {
#define METRIC(id, file, ...) file,
#include "sim/metrics.def"
    NULL
};
static const char *const identity_names[] = {
#define IDENTITY(id, file, ...) file,
#include "sim/metrics.def"
    NULL
};
static const char *const type_names[] = { "gauge",   "counter", "histogram",
                                          "summary", "untyped", NULL };
static const char *const format_names[] = { "integer", "fixed", "go", "python", "general", NULL };
static const char *const faulty_names[] = { "absent", "nan", NULL };
static const char *const empty_names[] = { "omit", "keep", NULL };

static bool is_metric_name(const char *name)
{
    const char *colon;

    for (; (colon = strchr(name, ':')); name = colon + 1)
        if (colon == name)
            return false;
    return is_label_name(name);
}

static const struct bind_shape metric_name = {
    .ok = is_metric_name,
    .words = "letters, digits, _ and :, not beginning with a digit",
    .regex = "^[A-Za-z_][A-Za-z0-9_:]*$",
};

static void init_sample(void *object)
{
    struct sample_rule *s = object;

    *s = (struct sample_rule){ .metric = -1, .identity = -1, .scale = 1, .bit = -1 };
}

static void init_family(void *object)
{
    struct family_rule *f = object;

    *f = (struct family_rule){ .format = NUMBER_GO, .decimals = 6 };
    init_sample(&f->one);
}

/* How many of the keys that say where a value comes from were given. */
static int count_sources(const struct bind_table *table, const void *object)
{
    return bind_is_set(table, object, "value") + bind_is_set(table, object, "identity") +
           bind_is_set(table, object, "constant");
}

static int check_sample(struct binder *b, const struct ynode *node, void *object);
static int check_family(struct binder *b, const struct ynode *node, void *object);

/* clang-format off */
#define SAMPLE_ROWS(S, m)                                                                                    \
    BIND_ROW_CHOICE("value", S, m metric, metric_names, "The metric that is shown."),                        \
    BIND_ROW_CHOICE("identity", S, m identity, identity_names, "The identity text that is shown; a number."), \
    BIND_ROW_REAL("constant", S, m constant, -1e300, 1e300, "A number that never changes."),                 \
    BIND_ROW_REAL("scale", S, m scale, -1e300, 1e300, "Factor from the unit in the metric's name."),         \
    BIND_ROW_REAL("step", S, m step, 1e-9, 1e300, "Rounds to a multiple of this before scaling."),           \
    BIND_ROW_INT("bit", S, m bit, 0, 62, 0, "Shows 1 when this bit of a bit mask is set, otherwise 0."),     \
    BIND_ROW_CUSTOM("labels", S, m labels, &labels_custom, "Labels of this series alone.")

static const struct bind_field sample_fields[] = {
    SAMPLE_ROWS(sample_rule,),
    { 0 },
};
static const struct bind_table sample_table = {
    .what = "a sample", .fields = sample_fields, .check = check_sample, .init = init_sample,
};
static const struct bind_field sample_item = { .type = BIND_STRUCT, .table = &sample_table };

static const struct bind_field family_fields[] = {
    BIND_ROW_SHAPED("name", family_rule, name, BIND_REQUIRED, &metric_name, "Name of the family."),
    BIND_ROW_TEXT("help", family_rule, help, BIND_REQUIRED, "Its HELP line."),
    BIND_ROW_CHOICE("type", family_rule, type, type_names, "Its TYPE; gauge unless given."),
    BIND_ROW_CHOICE("format", family_rule, format, format_names, "How its numbers are written; go unless given."),
    BIND_ROW_INT("decimals", family_rule, decimals, 0, 12, 0, "Decimals of the format fixed."),
    SAMPLE_ROWS(family_rule, one.),
    BIND_ROW_LIST("samples", family_rule, samples, &sample_item, struct sample_rule, 64, 0,
                  "Several series, told apart by their labels, in place of one value."),
    { 0 },
};
static const struct bind_table family_table = {
    .what = "a metric", .fields = family_fields, .check = check_family, .init = init_family,
};
static const struct bind_field family_item = { .type = BIND_STRUCT, .table = &family_table };

static const struct bind_field dialect_fields[] = {
    BIND_ROW_TEXT("name", dialect, name, BIND_REQUIRED, "Name of the identity."),
    BIND_ROW_TEXT("description", dialect, description, 0, "What it looks like."),
    BIND_ROW_TEXT("address", dialect, address, 0, "Where it listens unless told otherwise; :9400."),
    BIND_ROW_TEXT("counters", dialect, counters, 0, "The counters file that says which DCGM fields are shown."),
    BIND_ROW_INT("index_base", dialect, index_base, 0, 1, 0, "Number of the first GPU."),
    BIND_ROW_CHOICE("faulty_values", dialect, faulty, faulty_names, "What becomes of a reading that failed."),
    BIND_ROW_CHOICE("empty_labels", dialect, empty, empty_names, "What becomes of a label without a value."),
    BIND_ROW_CUSTOM("labels", dialect, labels, &labels_custom, "Labels of every series, in this order."),
    BIND_ROW_CUSTOM("attributes", dialect, attributes, &labels_custom, "Labels behind all others, sorted by name."),
    BIND_ROW_LIST("metrics", dialect, families, &family_item, struct family_rule, 512, 0, "The families, in this order."),
    { 0 },
};
/* clang-format on */

static int check_dialect(struct binder *b, const struct ynode *node, void *object)
{
    const struct dialect *d = object;

    if (!*d->counters == !d->families.count)
        return bind_refuse(b, EINVAL, node, "an identity needs either 'counters' or 'metrics'");
    return 0;
}

const struct bind_table dialect_table = { .what = "an identity",
                                          .fields = dialect_fields,
                                          .check = check_dialect };

static int check_source(struct binder *b, const struct ynode *node, int sources)
{
    if (sources == 1)
        return 0;
    return bind_refuse(b, EINVAL, node, "needs one of the keys 'value', 'identity', 'constant'");
}

static int check_sample(struct binder *b, const struct ynode *node, void *object)
{
    return check_source(b, node, count_sources(&sample_table, object));
}

static int check_family(struct binder *b, const struct ynode *node, void *object)
{
    struct family_rule *f = object;
    struct sample_rule *one;

    if (f->samples.count)
        return count_sources(&family_table, object)
                   ? bind_refuse(b, EINVAL, node, "has 'samples', so it cannot have a value itself")
                   : 0;
    one = arena_alloc(b->arena, sizeof(*one));
    if (!one)
        return bind_out_of_memory(b);
    *one = f->one;
    f->samples = (struct bind_list){ one, 1 };
    return check_source(b, node, count_sources(&family_table, object));
}

/* --- sets ------------------------------------------------------------------------------------ */

static void init_dialect(struct dialect *d)
{
    *d = (struct dialect){ .faulty = FAULTY_ABSENT, .empty = EMPTY_OMIT };
    strcpy(d->address, ":9400");
}

static int add_dialect(void *into, struct binder *b, const struct ynode *root)
{
    struct dialect_set *set = into;
    struct dialect d, *items;
    int r, at = 0;

    init_dialect(&d);
    r = bind_read(b, &dialect_table, root, &d);
    if (r < 0)
        return r;
    while (at < set->count && strcmp(set->items[at].name, d.name))
        at++;
    if (at == set->count) {
        items = realloc(set->items, (size_t)(set->count + 1) * sizeof(*items));
        if (!items)
            return why_set(b->why, ENOMEM, "out of memory");
        set->items = items;
        set->count++;
    }
    set->items[at] = d;
    return 0;
}

int dialect_set_load(struct dialect_set *set, const char *directory, struct why *why)
{
    int r;

    *set = (struct dialect_set){ 0 };
    r = library_load("identities", directory, &set->arena, add_dialect, set, why);
    if (r < 0)
        dialect_set_release(set);
    return r;
}

void dialect_set_release(struct dialect_set *set)
{
    free(set->items);
    arena_release(&set->arena);
    *set = (struct dialect_set){ 0 };
}

static const char *dialect_name_at(const void *set, int i)
{
    const struct dialect_set *s = set;

    return i < s->count ? s->items[i].name : NULL;
}

static bool is_path(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".yaml"));
}

const struct dialect *dialect_parse(struct dialect_set *set, const char *name, const char *text,
                                    size_t length, struct why *why)
{
    struct binder b = { .file = name, .arena = &set->arena, .why = why };
    struct dialect_set one = { 0 };
    struct ydoc doc;

    if (ydoc_parse(&doc, name, text, length, why) < 0)
        return NULL;
    if (add_dialect(&one, &b, doc.root) == 0) {
        free(set->items);
        set->items = one.items;
        set->count = one.count;
    }
    ydoc_release(&doc);
    text_release(&b.path);
    return one.count ? &set->items[0] : NULL;
}

static const struct dialect *load_file(struct dialect_set *set, const char *path, struct why *why)
{
    const struct dialect *found;
    unsigned long length;
    char *text;

    if (library_read_file(path, &text, &length, why) < 0)
        return NULL;
    found = dialect_parse(set, path, text, length, why);
    free(text);
    return found;
}

static int find(const struct dialect_set *set, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (!strcmp(set->items[i].name, name))
            return i;
    return -1;
}

bool dialect_is_known(const struct dialect_set *set, const char *name, struct why *why)
{
    struct text hint = TEXT_INIT;

    if (is_path(name) || find(set, name) >= 0)
        return true;
    suggest_add(&hint, name, dialect_name_at, set);
    why_set(why, EINVAL, "there is no identity '%s'%s", name, text_str(&hint));
    text_release(&hint);
    return false;
}

const struct dialect *dialect_find(struct dialect_set *set, const char *name, struct why *why)
{
    if (is_path(name))
        return load_file(set, name, why);
    return dialect_is_known(set, name, why) ? &set->items[find(set, name)] : NULL;
}

void dialect_schema(struct text *out)
{
    text_add(out, "{\n"
                  "  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                  "  \"title\": \"fakegpu-exporter identity\",\n  ");
    bind_schema(out, &dialect_table, 2);
    text_add(out, "\n}\n");
}
