/*
 * DCGM fields: their numbers and both generations of their names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_DCGM_FIELDS_H
#define EXPORTER_DCGM_FIELDS_H

enum field_type { FIELD_INT64, FIELD_DOUBLE, FIELD_STRING, FIELD_BINARY };

struct dcgm_field {
    int id;
    const char *name, *older_name; /* the latter "" when it is the same */
    enum field_type type;
};

/* By either name; NULL: DCGM has no such field. */
const struct dcgm_field *dcgm_field_find(const char *name);

/* suggest_names over both generations. */
const char *dcgm_field_name_at(const void *unused, int i);

#endif
