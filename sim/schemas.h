/*
 * Schemas: the declarative files of schemas/, built into the program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SCHEMAS_H
#define SIM_SCHEMAS_H

struct schema_file {
    const char *path; /* relative to schemas/, for example "models/t4.yaml" */
    const char *text;
    unsigned long length;
};

/* Sorted by path; the last row has a NULL path. */
extern const struct schema_file schema_files[];

#endif
