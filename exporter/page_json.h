/*
 * Page: what the live page is made of, and the view as it wants it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_PAGE_JSON_H
#define EXPORTER_PAGE_JSON_H

#include "exporter/view.h"
#include "sim/schemas.h"
#include "sim/text.h"

/* The files of exporter/page/, as schema_files are those of schemas/. */
extern const struct schema_file page_files[];

/* One object with what every card shows. Out of memory is in out->failed. */
void page_json(struct text *out, const struct view *view);

#endif
