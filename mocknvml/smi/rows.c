/*
 * Rows: everything there is to say about a GPU, in one table. See rows.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/rows.h"

#include <string.h>
#include <strings.h>

/* --- on which GPUs ------------------------------------------------------------------------------ */

static unsigned int architecture(struct gpu *gpu)
{
    char name[TEXT_BYTES];

    if (get_architecture(gpu, 0, name) != NVML_SUCCESS)
        return NVML_DEVICE_ARCH_AMPERE;
    return gpu->answers.architecture.value;
}

static bool is_ampere(struct gpu *gpu)
{
    return architecture(gpu) >= NVML_DEVICE_ARCH_AMPERE;
}

static bool is_turing(struct gpu *gpu)
{
    return architecture(gpu) == NVML_DEVICE_ARCH_TURING;
}

static bool is_older(struct gpu *gpu)
{
    return architecture(gpu) < NVML_DEVICE_ARCH_TURING;
}

/* Newer GPUs tell their limits as distances from the temperature at which they slow down. */
static bool has_margin(struct gpu *gpu)
{
    char text[TEXT_BYTES];

    return get_margin(gpu, 0, text) == NVML_SUCCESS;
}

static bool has_no_margin(struct gpu *gpu)
{
    return !has_margin(gpu);
}

/* --- the table ---------------------------------------------------------------------------------- */

/* clang-format off */
const struct row rows[] = {
#define SHOW(displays) { .kind = ROW_SHOW, .show = (displays) },
#define SECTION_OR(d, l, e, g) { .kind = ROW_SECTION, .depth = d, .label = l, .element = e, .get = g },
#define SECTION_IF(w, d, l, e) { .kind = ROW_SECTION, .depth = d, .label = l, .element = e, .when = w },
#define SECTION(d, l, e) SECTION_IF(NULL, d, l, e)
#define ROW_IF(w, d, l, e, f, g, a, u, h) { .depth = d, .label = l, .element = e, .fields = f, .get = g, \
                                            .argument = a, .unit = UNIT_##u, .help = h, .when = w },
#define ROW(d, l, e, f, g, a, u, h) ROW_IF(NULL, d, l, e, f, g, a, u, h)
#define QUERY(f, g, a, u, h) ROW_IF(NULL, 1, NULL, NULL, f, g, a, u, h)
#define BLOCK(d, b) { .kind = ROW_BLOCK, .depth = d, .block = b },
#include "mocknvml/smi/rows.def"
};
/* clang-format on */

const int row_count = sizeof(rows) / sizeof(rows[0]);

static const char *const display_names[] = {
#define DISPLAY_NAME(name) #name,
    DISPLAYS(DISPLAY_NAME)
};

unsigned int display_of(const char *name, size_t length)
{
    for (int i = 0; i < DISPLAY_COUNT; i++)
        if (strlen(display_names[i]) == length && !strncasecmp(display_names[i], name, length))
            return 1u << i;
    return 0;
}

void displays_help(FILE *file)
{
    enum { LEFT = 32, RIGHT = 100 };
    int column = RIGHT;

    for (int i = 0; i < DISPLAY_COUNT; i++) {
        if (column + (int)strlen(display_names[i]) + 2 > RIGHT)
            column = fprintf(file, "%s%*s", i ? "\n" : "", LEFT - 1, "");
        column += fprintf(file, " %s%s", display_names[i], i + 1 < DISPLAY_COUNT ? "," : "\n");
    }
}

/* --- values ------------------------------------------------------------------------------------- */

/* What stands before and after a number: in text and XML, and in CSV. */
static const struct {
    const char *before, *after, *csv;
} units[UNIT_COUNT] = {
    [UNIT_NONE] = { "", "", "" },        [UNIT_MIB] = { "", " MiB", " MiB" },
    [UNIT_PERCENT] = { "", " %", " %" }, [UNIT_PERCENT_CLOSE] = { "", "%", " %" },
    [UNIT_WATT] = { "", " W", " W" },    [UNIT_MHZ] = { "", " MHz", " MHz" },
    [UNIT_US] = { "", " us", " us" },    [UNIT_MS] = { "", " ms", " ms" },
    [UNIT_CELSIUS] = { "", " C", "" },   [UNIT_BANKS] = { "", " bank(s)", "" },
    [UNIT_LANES] = { "", "x", "" },      [UNIT_KBPS] = { "", " KB/s", "" },
    [UNIT_HEX] = { "0x", "", "" },
};

void value_with_unit(const char *value, enum unit unit, enum style style, char *text)
{
    const char *before = style == STYLE_XML ? "" : units[unit].before;
    const char *after = style == STYLE_CSV        ? units[unit].csv
                        : style == STYLE_CSV_BARE ? ""
                                                  : units[unit].after;

    snprintf(text, TEXT_BYTES, "%s%.*s%s", before, TEXT_BYTES - 16, value, after);
}

void value_missing(nvmlReturn_t result, bool brackets, char *text)
{
    const char *words = result == NVML_ERROR_NOT_SUPPORTED ||
                                result == NVML_ERROR_FUNCTION_NOT_FOUND ||
                                result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH
                            ? "N/A"
                        : result == NVML_ERROR_DEPRECATED
                            ? "Requested functionality has been deprecated"
                            : api_error(result);

    snprintf(text, TEXT_BYTES, brackets ? "[%s]" : "%s", words);
}

void row_value(const struct row *row, struct gpu *gpu, enum style style, char *text)
{
    char value[TEXT_BYTES] = "";
    nvmlReturn_t result = row->get(gpu, row->argument, value);
    bool is_csv = style == STYLE_CSV || style == STYLE_CSV_BARE;

    if (result == NVML_SUCCESS && !*value && !is_csv)
        result = NVML_ERROR_NOT_SUPPORTED; /* only CSV can show that there is nothing in it */
    if (result == NVML_SUCCESS)
        value_with_unit(value, row->unit, style, text);
    else
        value_missing(result, is_csv, text);
}

/* --- names of fields ---------------------------------------------------------------------------- */

bool field_is(const char *fields, const char *name)
{
    size_t length = strlen(name);

    while (fields) {
        size_t here = strcspn(fields, "|");

        if (here == length && !strncmp(fields, name, length))
            return true;
        fields = fields[here] ? fields + here + 1 : NULL;
    }
    return false;
}

void field_heading(const char *fields, enum unit unit, bool with_units, char *text)
{
    const char *csv = units[unit].csv;

    if (with_units && *csv)
        snprintf(text, TEXT_BYTES, "%.*s [%s]", (int)strcspn(fields, "|"), fields, csv + 1);
    else
        snprintf(text, TEXT_BYTES, "%.*s", (int)strcspn(fields, "|"), fields);
}

const struct row *rows_find(const char *name)
{
    for (int i = 0; i < row_count; i++)
        if (field_is(rows[i].fields, name))
            return &rows[i];
    return NULL;
}

/* --- printing ----------------------------------------------------------------------------------- */

static bool is_shown(const struct out *out, unsigned int shown, unsigned int asked)
{
    if (out->xml)
        return true;
    return asked ? (shown & asked & (DISPLAY_ONLY_ASKED - 1)) != 0 : !(shown & DISPLAY_ONLY_ASKED);
}

/* A section whose getter has something to say, or fails, is that value instead of its rows. */
static bool is_replaced(const struct row *row, struct gpu *gpu, char *text)
{
    nvmlReturn_t result;

    *text = '\0';
    if (!row->get)
        return false;
    result = row->get(gpu, row->argument, text);
    if (result != NVML_SUCCESS)
        value_missing(result, false, text);
    return *text != '\0';
}

static void close_down_to(struct out *out, const char **open, int *depth, int to)
{
    for (; *depth > to; (*depth)--)
        if (open[*depth])
            out_close(out, *depth, open[*depth]);
}

void rows_print(struct out *out, struct gpu *gpu, unsigned int asked)
{
    const char *open[8] = { NULL }; /* elements, by depth */
    char text[TEXT_BYTES];
    unsigned int shown = 0;
    int depth = 0, skip_below = 100; /* rows deeper than that belong to what is not there */

    for (const struct row *row = rows; row < rows + row_count; row++) {
        if (row->kind == ROW_SHOW) {
            shown = row->show;
            continue;
        }
        if (row->depth > skip_below || (row->kind == ROW_VALUE && !row->label && !row->element))
            continue;
        skip_below = 100;
        if (!is_shown(out, shown, asked))
            continue;
        if (row->when && !row->when(gpu)) {
            skip_below = row->depth;
            continue;
        }
        /* In text a slowdown's kinds stand below it, which in XML is a value as well. */
        close_down_to(out, open, &depth, row->depth - 1 < depth ? row->depth - 1 : depth);
        switch (row->kind) {
        case ROW_BLOCK:
            row->block(out, gpu, row->depth);
            break;
        case ROW_SECTION:
            if (is_replaced(row, gpu, text)) {
                out_value(out, row->depth, row->label, row->element, text);
                skip_below = row->depth;
                break;
            }
            out_open(out, row->depth, row->label, row->element);
            depth = row->depth;
            open[depth] = row->element;
            break;
        default:
            row_value(row, gpu, out->xml ? STYLE_XML : STYLE_TEXT, text);
            out_value(out, out->xml && row->depth > depth + 1 ? depth + 1 : row->depth, row->label,
                      row->element, text);
            break;
        }
    }
    close_down_to(out, open, &depth, 0);
}
