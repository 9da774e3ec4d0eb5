/*
 * DCGM fields. See dcgm_fields.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/dcgm_fields.h"

#include <stddef.h>
#include <string.h>

static const struct dcgm_field fields[] = {
#define FIELD(id, name, older, type) { id, name, older, FIELD_##type },
#include "exporter/dcgm_fields.def"
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

const struct dcgm_field *dcgm_field_find(const char *name)
{
    for (int i = 0; i < FIELDS; i++)
        if (!strcmp(fields[i].name, name) || (*name && !strcmp(fields[i].older_name, name)))
            return &fields[i];
    return NULL;
}

const char *dcgm_field_name_at(const void *unused, int i)
{
    const struct dcgm_field *f = &fields[i / 2 < FIELDS ? i / 2 : 0];

    (void)unused;
    if (i / 2 >= FIELDS)
        return NULL;
    return i % 2 && *f->older_name ? f->older_name : f->name;
}
