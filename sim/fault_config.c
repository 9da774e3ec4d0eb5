/*
 * Fault config: the faults that a configuration plans. See fault_config.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/fault_config.h"

#include <errno.h>

static int read_fault(struct binder *b, const struct ynode *node, void *member)
{
    struct why inner = { 0 };
    int r;

    if (node->kind != YNODE_SCALAR)
        return bind_expected(b, node, "a fault like 'xid 79'");
    r = fault_parse(node->text, member, &inner);
    if (r < 0)
        bind_refuse(b, -r, node, "%s", why_text(&inner));
    why_release(&inner);
    return r;
}

static void print_fault(struct text *out, const void *member, int indent)
{
    (void)indent;
    text_add(out, " ");
    fault_print(out, member);
    text_add(out, "\n");
}

static const struct bind_custom fault_custom = { read_fault, print_fault,
                                                 "\"$ref\": \"#/$defs/fault\"" };

static int check_fault(struct binder *b, const struct ynode *node, void *object)
{
    struct fault_spec *f = object;

    if (f->fault.after_ns)
        return bind_refuse(b, EINVAL, ynode_get(node, "fault"),
                           "'after' is for commands; here the key 'at' says when");
    if (f->for_ns && f->fault.for_ns)
        return bind_refuse(b, EINVAL, ynode_key(node, "for"),
                           "gives the duration twice: here and in 'fault'");
    if (!f->for_ns)
        f->for_ns = f->fault.for_ns;
    if (f->for_ns && !fault_lasts(&f->fault))
        return bind_refuse(b, EINVAL, ynode_key(node, "for"),
                           "this fault happens at once and has no duration");
    if (f->every_ns && f->every_ns < f->for_ns)
        return bind_refuse(b, ERANGE, ynode_get(node, "every"),
                           "'every' is shorter than the fault lasts");
    /* It is printed by its own key. */
    f->fault.for_ns = 0;
    bind_mark(&fault_spec_table, f, "for", f->for_ns != 0);
    return 0;
}

/* clang-format off */
static const struct bind_field fault_fields[] = {
    BIND_ROW_QUANTITY("at", fault_spec, at_ns, UNIT_NANOSECOND, 0, TIME_MAX_NS, 0, "Simulated time."),
    BIND_ROW_TEXT("gpu", fault_spec, gpu, BIND_REQUIRED, "GPU by index, UUID or bus id, or all."),
    { .key = "fault", .type = BIND_CUSTOM, BIND_AT(fault_spec, fault), .custom = &fault_custom,
      .size = sizeof(struct fault), .flags = BIND_REQUIRED, .help = "What happens, for example 'xid 79'." },
    BIND_ROW_QUANTITY("for", fault_spec, for_ns, UNIT_NANOSECOND, NS_PER_MS, TIME_MAX_NS, 0, "How long; until recover where it is not given."),
    BIND_ROW_QUANTITY("every", fault_spec, every_ns, UNIT_NANOSECOND, NS_PER_MS, TIME_MAX_NS, 0, "Again after so long."),
    { 0 },
};
const struct bind_table fault_spec_table = { .what = "a fault", .fields = fault_fields, .check = check_fault };
/* clang-format on */
