/*
 * Template: the value of a label as an identity writes it, "nvidia{minor_number}".
 *
 * What stands in braces is a variable: one of the identity texts of a GPU (sim/metrics.def) or one of those
 * of the table below. A doubled brace is a brace.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_TEMPLATE_H
#define EXPORTER_TEMPLATE_H

#include <stddef.h>

#include "sim/metric.h"

struct arena;
struct binder;
struct text;
struct ynode;

/* VARIABLE(ID, "name", "what it is") */
/* clang-format off */
#define VARIABLE_TABLE(VARIABLE)                                                          \
    VARIABLE(HOSTNAME, "hostname", "name of the node")                                    \
    VARIABLE(UUID_BARE, "uuid_bare", "the UUID without GPU-")                             \
    VARIABLE(PCI_ADDRESS, "pci_address", "PCI address as Linux writes it: 0000:06:00.0")  \
    VARIABLE(PCI_DEVICE, "pci_device", "PCI device without its vendor: 0x20b0")            \
    VARIABLE(NAMESPACE, "namespace", "namespace of the pod that uses the GPU")            \
    VARIABLE(POD, "pod", "its name")                                                      \
    VARIABLE(CONTAINER, "container", "its container")                                     \
    VARIABLE(GI, "gi", "number of the MIG GPU instance")                                  \
    VARIABLE(GI_PROFILE, "gi_profile", "its profile: 1g.5gb")                             \
    VARIABLE(XID, "xid", "number of the last Xid error")                                  \
    VARIABLE(XID_MESSAGE, "xid_message", "what that Xid means")
/* clang-format on */

enum variable {
    VARIABLE_IDENTITIES = IDENTITY_COUNT, /* below: enum identity */
    VARIABLE_BEFORE_FIRST = IDENTITY_COUNT - 1,
#define VARIABLE(id, name, help) VARIABLE_##id,
    VARIABLE_TABLE(VARIABLE)
#undef VARIABLE
        VARIABLE_COUNT,
    VARIABLE_LITERAL = -1,
};

struct template_part {
    enum variable variable;
    const char *literal; /* when it is VARIABLE_LITERAL */
};

struct template
{
    const struct template_part *parts;
    size_t count;
};

/* Gives the text of a variable, or NULL when there is none. */
typedef const char *template_lookup(const void *context, enum variable variable);

/* Reads a scalar; what it becomes is in the binder's arena. -errno with a sentence. */
int template_read(struct binder *b, const struct ynode *node, struct template *t);

/* Appends the text. False when one of its variables has none. */
bool template_add(struct text *out, const struct template *t, template_lookup *lookup,
                  const void *context);

/* Whether it is that variable and nothing else. */
bool template_is(const struct template *t, enum variable variable);

/* Whether it has that variable. */
bool template_has(const struct template *t, enum variable variable);

/* The variable's name, or NULL behind the last; also suggest_names. */
const char *variable_name_at(const void *unused, int i);

#endif
