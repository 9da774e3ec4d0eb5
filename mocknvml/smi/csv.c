/*
 * Csv: `--query-…`: chosen fields of GPUs, processes, clocks and pages, as comma separated values.
 *
 * --query-gpu is the table of rows. The others add a few columns of their own to some of its columns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mocknvml/smi/processes.h"
#include "mocknvml/smi/rows.h"
#include "mocknvml/smi/smi.h"

/* --- kinds and their columns -------------------------------------------------------------------- */

/* What one line is about besides its GPU. */
struct record {
    const struct process *process;
    unsigned int pid; /* of an accounted process */
    nvmlAccountingStats_t accounted;
    unsigned int memory_mhz, graphics_mhz;
    unsigned long long page, page_time;
    nvmlPageRetirementCause_t cause;
    nvmlReturn_t result; /* of asking for it */
};

struct column {
    const char *fields;
    const char *of_gpu; /* the field of --query-gpu that this one is; else: */
    nvmlReturn_t (*get)(const struct record *record, char *text);
    enum unit unit;
    const char *help;
};

struct csv_kind {
    const char *option; /* without its "--" */
    const char *help;
    const char *title;
    const struct column *columns; /* ends with an empty one; NULL: all fields of the rows */
    void (*each)(struct gpu *gpu, void (*line)(void *, struct gpu *, const struct record *),
                 void *context);
};

static nvmlReturn_t get_pid(const struct record *r, char *text)
{
    return say(NVML_SUCCESS, text, "%u", r->process ? r->process->pid : r->pid);
}

static nvmlReturn_t get_process_name(const struct record *r, char *text)
{
    process_name(r->process->pid, text, TEXT_BYTES);
    return NVML_SUCCESS;
}

static nvmlReturn_t get_process_memory(const struct record *r, char *text)
{
    return say(r->process->bytes == ~0ull ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS, text, "%llu",
               r->process->bytes >> 20);
}

static nvmlReturn_t get_no_vgpu(const struct record *r, char *text)
{
    (void)r, (void)text;
    return NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t get_accounted_gpu(const struct record *r, char *text)
{
    return say(r->result, text, "%u", r->accounted.gpuUtilization);
}

static nvmlReturn_t get_accounted_memory(const struct record *r, char *text)
{
    return say(r->result, text, "%u", r->accounted.memoryUtilization);
}

static nvmlReturn_t get_accounted_most(const struct record *r, char *text)
{
    return say(r->result, text, "%llu", r->accounted.maxMemoryUsage >> 20);
}

static nvmlReturn_t get_accounted_time(const struct record *r, char *text)
{
    return say(r->result, text, "%llu", r->accounted.time);
}

static nvmlReturn_t get_memory_clock(const struct record *r, char *text)
{
    return say(r->result, text, "%u", r->memory_mhz);
}

static nvmlReturn_t get_graphics_clock(const struct record *r, char *text)
{
    return say(r->result, text, "%u", r->graphics_mhz);
}

static nvmlReturn_t get_page(const struct record *r, char *text)
{
    return say(r->result, text, "0x%016llx", r->page);
}

static nvmlReturn_t get_page_time(const struct record *r, char *text)
{
    time_t seconds = (time_t)(r->page_time / 1000000);
    struct tm local;
    char stamp[64];

    strftime(stamp, sizeof(stamp), "%a %b %e %H:%M:%S %Y", localtime_r(&seconds, &local));
    return say(r->result, text, "%s", stamp);
}

static nvmlReturn_t get_page_cause(const struct record *r, char *text)
{
    return say(NVML_SUCCESS, text, "%s",
               r->cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR ? "Double Bit ECC"
                                                                           : "Single Bit ECC");
}

/* clang-format off */
#define OF_GPU                                                                                     \
    { "timestamp", "timestamp", NULL, UNIT_NONE, "When the query was made: YYYY/MM/DD HH:MM:SS.msec." }, \
    { "gpu_name", "name", NULL, UNIT_NONE, "The name of its GPU." },                               \
    { "gpu_bus_id", "pci.bus_id", NULL, UNIT_NONE, "The PCI address of its GPU." },                \
    { "gpu_serial", "serial", NULL, UNIT_NONE, "The serial number of its GPU." },                  \
    { "gpu_uuid", "uuid", NULL, UNIT_NONE, "The UUID of its GPU." }

static const struct column compute_apps[] = {
    OF_GPU,
    { "pid", NULL, get_pid, UNIT_NONE, "The number of the process." },
    { "process_name|name", NULL, get_process_name, UNIT_NONE, "The program that it runs." },
    { "used_gpu_memory|used_memory", NULL, get_process_memory, UNIT_MIB, "The memory that it has taken." },
    { 0 },
};
static const struct column accounted_apps[] = {
    OF_GPU,
    { "vgpu_instance", NULL, get_no_vgpu, UNIT_NONE, "Its virtual GPU." },
    { "pid", NULL, get_pid, UNIT_NONE, "The number of the process." },
    { "gpu_utilization|gpu_util", NULL, get_accounted_gpu, UNIT_PERCENT, "How much of its time it ran on the GPU." },
    { "mem_utilization|mem_util", NULL, get_accounted_memory, UNIT_PERCENT, "How much of its time it used the memory." },
    { "max_memory_usage", NULL, get_accounted_most, UNIT_MIB, "The most memory that it had." },
    { "time", NULL, get_accounted_time, UNIT_MS, "For how long it had the GPU; 0 while it runs." },
    { 0 },
};
static const struct column supported_clocks[] = {
    OF_GPU,
    { "memory|mem", NULL, get_memory_clock, UNIT_MHZ, "A memory clock." },
    { "graphics|gr", NULL, get_graphics_clock, UNIT_MHZ, "A graphics clock that can be set with it." },
    { 0 },
};
static const struct column retired_pages[] = {
    OF_GPU,
    { "retired_pages.address", NULL, get_page, UNIT_NONE, "The address of a page that is no longer used." },
    { "retired_pages.timestamp", NULL, get_page_time, UNIT_NONE, "When it was retired." },
    { "retired_pages.cause", NULL, get_page_cause, UNIT_NONE, "Why: Single Bit ECC or Double Bit ECC." },
    { 0 },
};
#define REMAPPED(name, unit, help) { "remapped_rows." name, "remapped_rows." name, NULL, unit, help }
static const struct column remapped_rows[] = {
    OF_GPU,
    REMAPPED("correctable", UNIT_NONE, "Rows that were replaced since single bits in them failed."),
    REMAPPED("uncorrectable", UNIT_NONE, "Rows that were replaced since two bits in them failed."),
    REMAPPED("pending", UNIT_NONE, "Whether there are rows that the next reset will replace."),
    REMAPPED("failure", UNIT_NONE, "Whether a row could not be replaced."),
    REMAPPED("histogram.max", UNIT_BANKS, "Banks with all their spare rows."),
    REMAPPED("histogram.high", UNIT_BANKS, "Banks with many spare rows left."),
    REMAPPED("histogram.partial", UNIT_BANKS, "Banks with some spare rows left."),
    REMAPPED("histogram.low", UNIT_BANKS, "Banks with few spare rows left."),
    REMAPPED("histogram.none", UNIT_BANKS, "Banks with no spare row left."),
    { 0 },
};
/* clang-format on */

/* --- the records of a GPU ----------------------------------------------------------------------- */

typedef void line_writer(void *context, struct gpu *gpu, const struct record *record);

static void each_gpu(struct gpu *gpu, line_writer *line, void *context)
{
    line(context, gpu, &(struct record){ 0 });
}

static void each_process(struct gpu *gpu, line_writer *line, void *context)
{
    struct processes list;

    processes_get(gpu, PROCESS_COMPUTE | PROCESS_MPS, &list);
    for (unsigned int i = 0; i < list.count; i++)
        line(context, gpu, &(struct record){ .process = &list.items[i] });
    processes_release(&list);
}

static void each_accounted(struct gpu *gpu, line_writer *line, void *context)
{
    unsigned int *pids, count;

    accounted_pids(gpu, &pids, &count);
    for (unsigned int i = 0; i < count; i++) {
        struct record record = { .pid = pids[i] };

        record.result = ASK(DeviceGetAccountingStats, gpu->device, pids[i], &record.accounted);
        line(context, gpu, &record);
    }
    free(pids);
}

static void each_clock(struct gpu *gpu, line_writer *line, void *context)
{
    enum { CLOCKS_MAX = 1024 };
    unsigned int memory[CLOCKS_MAX], graphics[CLOCKS_MAX], memories = CLOCKS_MAX;
    nvmlReturn_t result = ASK(DeviceGetSupportedMemoryClocks, gpu->device, &memories, memory);

    if (result != NVML_SUCCESS) {
        line(context, gpu, &(struct record){ .result = result });
        return;
    }
    for (unsigned int i = 0; i < memories; i++) {
        unsigned int count = CLOCKS_MAX;

        if (ASK(DeviceGetSupportedGraphicsClocks, gpu->device, memory[i], &count, graphics) !=
            NVML_SUCCESS)
            continue;
        for (unsigned int g = 0; g < count; g++)
            line(context, gpu,
                 &(struct record){ .memory_mhz = memory[i], .graphics_mhz = graphics[g] });
    }
}

static void each_page(struct gpu *gpu, line_writer *line, void *context)
{
    enum { PAGES_MAX = 512 };
    unsigned long long pages[PAGES_MAX], times[PAGES_MAX];

    for (int cause = 0; cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT; cause++) {
        struct record record = { .cause = (nvmlPageRetirementCause_t)cause };
        unsigned int count = PAGES_MAX;

        record.result = ASK(DeviceGetRetiredPages_v2, gpu->device, record.cause, &count, pages,
                            times);
        if (record.result != NVML_SUCCESS)
            line(context, gpu, &record);
        for (unsigned int i = 0; record.result == NVML_SUCCESS && i < count; i++) {
            record.page = pages[i];
            record.page_time = times[i];
            line(context, gpu, &record);
        }
    }
}

static const struct csv_kind kinds[] = {
    { "query-gpu", "GPUs.", NULL, NULL, each_gpu },
    { "query-compute-apps", "Processes that compute.", "Active Compute Processes", compute_apps,
      each_process },
    { "query-accounted-apps", "Processes that accounting knows.",
      "Accounted Graphics/Compute Processes", accounted_apps, each_accounted },
    { "query-supported-clocks", "Clocks that can be set.", "Supported Clocks", supported_clocks,
      each_clock },
    { "query-retired-pages", "Pages of memory that are no longer used.", "Retired Pages",
      retired_pages, each_page },
    { "query-remapped-rows", "Rows of memory that were replaced.", "Remapped Rows", remapped_rows,
      each_gpu },
};

const struct csv_kind *csv_find(const char *option)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(kinds[i].option, option))
            return &kinds[i];
    return NULL;
}

/* --- the fields that were asked for ------------------------------------------------------------- */

/* One of them: a row, or a column with the row that it is. */
struct field {
    const struct row *row;
    const struct column *column;
};

static bool find_field(const struct csv_kind *kind, const char *name, struct field *field)
{
    *field = (struct field){ 0 };
    for (const struct column *c = kind->columns; c && c->fields; c++) {
        if (field_is(c->fields, name)) {
            field->column = c;
            field->row = c->of_gpu ? rows_find(c->of_gpu) : NULL;
            return true;
        }
    }
    field->row = kind->columns ? NULL : rows_find(name);
    return field->row != NULL;
}

struct fields {
    struct field *items;
    int count;
};

/* The fields of the list, in its order; complains about the first that there is not. */
static int fields_resolve(const struct options *options, struct fields *fields)
{
    char *copy = strdup(options->fields), *rest = copy, *name;
    int status = 0;

    *fields = (struct fields){ .items = calloc(strlen(options->fields) + 1, sizeof(struct field)) };
    if (!copy || !fields->items)
        status = exit_status(NVML_ERROR_MEMORY);
    while (status == 0 && (name = strsep(&rest, ","))) {
        name += strspn(name, " ");
        name[strcspn(name, " ")] = '\0';
        if (!find_field(options->csv, name, &fields->items[fields->count++]))
            status = complain("Field \"%s\" is not a valid field to query.\n", name);
    }
    free(copy);
    return status;
}

static void fields_release(struct fields *fields)
{
    free(fields->items);
    *fields = (struct fields){ 0 };
}

int csv_check(const struct options *options)
{
    struct fields fields;
    int status;

    if (!options->has_format)
        return complain("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n");
    status = fields_resolve(options, &fields);
    fields_release(&fields);
    return status;
}

/* --- lines -------------------------------------------------------------------------------------- */

struct line {
    FILE *file;
    const struct fields *fields;
    bool units;
};

static void print_heading(const struct line *line)
{
    char text[TEXT_BYTES];

    for (int i = 0; i < line->fields->count; i++) {
        const struct field *field = &line->fields->items[i];

        if (field->column)
            field_heading(field->column->fields, field->column->unit, line->units, text);
        else
            field_heading(field->row->fields, field->row->unit, line->units, text);
        fprintf(line->file, "%s%s", i ? ", " : "", text);
    }
    fputc('\n', line->file);
}

static void column_value(const struct column *column, const struct record *record, enum style style,
                         char *text)
{
    char value[TEXT_BYTES] = "";
    nvmlReturn_t result = column->get(record, value);

    if (result == NVML_SUCCESS)
        value_with_unit(value, column->unit, style, text);
    else
        value_missing(result, true, text);
}

static void print_line(void *context, struct gpu *gpu, const struct record *record)
{
    const struct line *line = context;
    enum style style = line->units ? STYLE_CSV : STYLE_CSV_BARE;
    char text[TEXT_BYTES];

    for (int i = 0; i < line->fields->count; i++) {
        const struct field *field = &line->fields->items[i];

        if (field->row)
            row_value(field->row, gpu, style, text);
        else
            column_value(field->column, record, style, text);
        fprintf(line->file, "%s%s", i ? ", " : "", text);
    }
    fputc('\n', line->file);
}

int csv_print(FILE *file, struct gpus *gpus, const struct options *options, bool first)
{
    struct fields fields;
    struct line line = { .file = file, .fields = &fields, .units = !options->no_units };
    int status = fields_resolve(options, &fields);

    if (status == 0 && first && !options->no_header)
        print_heading(&line);
    for (unsigned int i = 0; status == 0 && i < gpus->count; i++)
        options->csv->each(&gpus->items[i], print_line, &line);
    fields_release(&fields);
    return status;
}

/* --- help --------------------------------------------------------------------------------------- */

static void print_names(FILE *file, const char *fields)
{
    while (fields) {
        size_t length = strcspn(fields, "|");

        fprintf(file, "\"%.*s\"%s", (int)length, fields, fields[length] ? " or " : "\n");
        fields = fields[length] ? fields + length + 1 : NULL;
    }
}

static bool has_prefix(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

/*
 * The order in which --help-query-gpu tells the fields, by the beginnings of their names, with what is said
 * before some of them.
 */
static const struct topic {
    const char *prefix, *section, *about;
} topics[] = {
    { "timestamp", NULL, NULL },
    { "driver_version", NULL, NULL },
    { "kmd_version", NULL, NULL },
    { "vgpu_driver_capability.", "vgpu_driver_capability",
      "What the driver can do with virtual GPUs." },
    { "count", NULL, NULL },
    { "name", NULL, NULL },
    { "serial", NULL, NULL },
    { "uuid", NULL, NULL },
    { "pci.bus_id", NULL, NULL },
    { "pci.domain", NULL, NULL },
    { "pci.", NULL, NULL },
    { "vgpu_device_capability.", "vgpu_device_capability",
      "What the GPU can do with virtual GPUs." },
    { "pcie.link.gen.", NULL, NULL },
    { "pcie.link.width.", NULL, NULL },
    { "index", NULL, NULL },
    { "display_", NULL, NULL },
    { "persistence_mode", NULL, NULL },
    { "addressing_mode", NULL, NULL },
    { "accounting.", NULL, NULL },
    { "driver_model.", "driver_model", "Always N/A on Linux." },
    { "vbios_version", NULL, NULL },
    { "inforom.", "inforom", "Versions of what the board's infoROM holds." },
    { "gpu_recovery_action", NULL, NULL },
    { "gom.", "gom", "Parts of some GPUs can be switched off: see --gom." },
    { "fan.speed", NULL, NULL },
    { "pstate", NULL, NULL },
    { "clocks_event_reasons.", "clocks_event_reasons", "Why clocks are lower than they might be." },
    { "clocks_event_reasons_counters.", "clocks_event_reasons_counters",
      "For how long they were." },
    { "memory.", "memory", "The memory of the board." },
    { "compute_mode", NULL, NULL },
    { "compute_cap", NULL, NULL },
    { "utilization.", "utilization", "How busy the GPU is. Not known for a GPU that MIG divides." },
    { "encoder.stats.", "encoder.stats", "Sessions of the encoder." },
    { "dramEncryption.mode.", "dramEncryption.mode", "Encryption of the memory." },
    { "ecc.mode.", "ecc.mode", "Error correction of the memory: see -e." },
    { "ecc.errors.", "ecc.errors",
      "How many errors there were: volatile since the driver was loaded, aggregate ever." },
    { "retired_pages.", "retired_pages", "Pages of memory that are no longer used." },
    { "remapped_rows.", "remapped_rows", "Rows of memory that were replaced by spare ones." },
    { "temperature.", NULL, NULL },
    { "power.management", NULL, NULL },
    { "power.draw", NULL, NULL },
    { "power.limit", NULL, NULL },
    { "enforced.power.limit", NULL, NULL },
    { "power.", NULL, NULL },
    { "module.", NULL, NULL },
    { "power_smoothing.", NULL, NULL },
    { "edpp_multiplier", NULL, NULL },
    { "clocks.current.", NULL, NULL },
    { "clocks.applications.", "clocks.applications", "Clocks for applications: see -ac." },
    { "clocks.default_applications.", "clocks.default_applications",
      "Clocks for applications when none were set: see -rac." },
    { "clocks.max.", "clocks.max", "The highest clocks." },
    { "mig.mode.", "mig.mode", "Division of the GPU: see -mig." },
    { "gsp.mode.", "gsp.mode", "The firmware of the GPU's system processor." },
    { "c2c.mode", NULL, NULL },
    { "protected_memory.", "protected_memory", "Memory for confidential computing." },
    { "fabric.", NULL, NULL },
    { "platform.", "platform", "Where the GPU sits in its rack." },
    { "hostname", NULL, NULL },
};

enum { TOPICS = sizeof(topics) / sizeof(topics[0]) };

/* The first topic that a field belongs to. */
static const struct topic *topic_of(const struct row *row)
{
    for (const struct topic *t = topics; t < topics + TOPICS; t++)
        if (has_prefix(row->fields, t->prefix))
            return t;
    return NULL;
}

static void rows_help(FILE *file)
{
    for (const struct topic *t = topics; t < topics + TOPICS; t++) {
        if (t->section)
            fprintf(file, "Section about %s properties\n%s\n\n", t->section, t->about);
        for (int i = 0; i < row_count; i++) {
            if (!rows[i].fields || topic_of(&rows[i]) != t)
                continue;
            print_names(file, rows[i].fields);
            fprintf(file, "%s\n\n", rows[i].help);
        }
    }
}

void csv_help(FILE *file, const struct csv_kind *kind)
{
    fprintf(file, "List of valid properties to query for the switch \"--%s\":\n\n", kind->option);
    if (!kind->columns) {
        rows_help(file);
        return;
    }
    fprintf(file, "Section about %s properties\n\n", kind->title);
    for (const struct column *c = kind->columns; c->fields; c++) {
        print_names(file, c->fields);
        fprintf(file, "%s\n\n", c->help);
    }
}

void csv_kinds_help(FILE *file)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char name[64], help[128];

        snprintf(name, sizeof(name), "--%s", kinds[i].option);
        snprintf(help, sizeof(help), "%s --help-%s lists fields.", kinds[i].help, kinds[i].option);
        help_line(file, NULL, name, true, help);
    }
}
