/*
 * Out: sections and values, as indented text or as XML.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_OUT_H
#define SMI_OUT_H

#include <stdbool.h>
#include <stdio.h>

enum { OUT_COLUMN = 55, OUT_COLUMN_NARROW = 42 };

struct out {
    FILE *file;
    bool xml;
    int column; /* of the colon, in text */
};

/* A NULL label leaves the line out of text, a NULL element out of XML. */
void out_open(struct out *out, int depth, const char *label, const char *element);
void out_close(struct out *out, int depth, const char *element);
void out_value(struct out *out, int depth, const char *label, const char *element,
               const char *text);

/* A line of XML that is neither. */
void out_raw(struct out *out, int depth, const char *text);

#endif
