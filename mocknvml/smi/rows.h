/*
 * Rows: everything there is to say about a GPU, in one table.
 *
 * `-q` prints the table's labels, `-q -x` its elements, `--query-gpu` its field names; all three show the
 * same value, got by the same function, each with its own unit and its own words for what there is not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_ROWS_H
#define SMI_ROWS_H

#include "mocknvml/smi/gpu.h"
#include "mocknvml/smi/out.h"

/* What -d selects. */
#define DISPLAYS(DISPLAY)              \
    DISPLAY(MEMORY)                    \
    DISPLAY(UTILIZATION)               \
    DISPLAY(ECC)                       \
    DISPLAY(TEMPERATURE)               \
    DISPLAY(POWER)                     \
    DISPLAY(CLOCK)                     \
    DISPLAY(COMPUTE)                   \
    DISPLAY(PIDS)                      \
    DISPLAY(PERFORMANCE)               \
    DISPLAY(SUPPORTED_CLOCKS)          \
    DISPLAY(PAGE_RETIREMENT)           \
    DISPLAY(ACCOUNTING)                \
    DISPLAY(ENCODER_STATS)             \
    DISPLAY(SUPPORTED_GPU_TARGET_TEMP) \
    DISPLAY(VOLTAGE)                   \
    DISPLAY(FBC_STATS)                 \
    DISPLAY(ROW_REMAPPER)              \
    DISPLAY(RESET_STATUS)              \
    DISPLAY(GSP_FIRMWARE_VERSION)      \
    DISPLAY(POWER_SMOOTHING)           \
    DISPLAY(POWER_PROFILES)

enum display_bit {
#define DISPLAY_BIT(name) BIT_##name,
    DISPLAYS(DISPLAY_BIT)
#undef DISPLAY_BIT
        DISPLAY_COUNT
};

enum display {
    DISPLAY_NONE = 0, /* only shown when nothing is selected */
#define DISPLAY_MASK(name) DISPLAY_##name = 1 << BIT_##name,
    DISPLAYS(DISPLAY_MASK)
#undef DISPLAY_MASK
        DISPLAY_ONLY_ASKED = 1 << DISPLAY_COUNT /* text: only when it is selected */
};

enum unit {
    UNIT_NONE,
    UNIT_MIB,
    UNIT_PERCENT,
    UNIT_PERCENT_CLOSE, /* text: without a blank */
    UNIT_WATT,
    UNIT_MHZ,
    UNIT_US,
    UNIT_MS,
    UNIT_CELSIUS, /* the rest: not in --query-gpu */
    UNIT_BANKS,
    UNIT_LANES,
    UNIT_KBPS,
    UNIT_HEX, /* a 0x before it, but not in XML */
    UNIT_COUNT
};

/* Where a value is shown, and so how. */
enum style { STYLE_TEXT, STYLE_XML, STYLE_CSV, STYLE_CSV_BARE, STYLE_COUNT };

enum row_kind {
    ROW_VALUE,
    ROW_SECTION, /* rows that are deeper follow, unless its getter has a value instead */
    ROW_BLOCK,   /* draws itself */
    ROW_SHOW     /* what -d shows the rows after it */
};

struct row {
    enum row_kind kind;
    int depth;           /* 1: below the GPU */
    const char *label;   /* NULL: not in text */
    const char *element; /* NULL: not in XML */
    const char *fields;  /* names in --query-gpu, the first one heads the column: "name|alias" */
    getter *get;
    int argument;
    enum unit unit;
    const char *help;
    bool (*when)(struct gpu *gpu); /* NULL: always */
    void (*block)(struct out *out, struct gpu *gpu, int depth);
    unsigned int show; /* of ROW_SHOW */
};

extern const struct row rows[];
extern const int row_count;

/* The GPU's rows, those of the displays alone unless `show` is 0. */
void rows_print(struct out *out, struct gpu *gpu, unsigned int show);

/* The row that has this field name; NULL. */
const struct row *rows_find(const char *name);

/* A row's value with its unit, or what stands for it where there is none. */
void row_value(const struct row *row, struct gpu *gpu, enum style style, char *text);

/* What stands for a value that there is not. */
void value_missing(nvmlReturn_t result, bool brackets, char *text);

/* Puts the unit to a value. */
void value_with_unit(const char *value, enum unit unit, enum style style, char *text);

/* The column's head in CSV: "memory.used [MiB]". `length` of the first name. */
void field_heading(const char *fields, enum unit unit, bool units, char *text);

/* Whether `name` is one of "name|alias|alias". */
bool field_is(const char *fields, const char *name);

/* The bit of a display's name; 0 when there is none. */
unsigned int display_of(const char *name, size_t length);

/* Their names, as lines of -h. */
void displays_help(FILE *file);

/* Blocks. */
void block_mig_devices(struct out *out, struct gpu *gpu, int depth);
void block_processes(struct out *out, struct gpu *gpu, int depth);
void block_accounted(struct out *out, struct gpu *gpu, int depth);
void block_supported_clocks(struct out *out, struct gpu *gpu, int depth);
void block_retired_pages(struct out *out, struct gpu *gpu, int depth);
void block_power_samples(struct out *out, struct gpu *gpu, int depth);
void block_utilization_samples(struct out *out, struct gpu *gpu, int depth);
void block_clock_samples(struct out *out, struct gpu *gpu, int depth);

#endif
