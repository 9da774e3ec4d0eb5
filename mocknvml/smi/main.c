/*
 * nvidia-smi: shows GPUs and changes their settings, through the management library alone.
 *
 *     nvidia-smi                                                 a table of all GPUs
 *     nvidia-smi --query-gpu=index,utilization.gpu --format=csv  some values of each
 *     nvidia-smi -i 0 -pl 250                                    a power limit
 *
 * It knows nothing about where the library gets its answers from: on a machine with a real driver it shows
 * real GPUs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/rows.h"
#include "mocknvml/smi/smi.h"

/* --- options ------------------------------------------------------------------------------------ */

enum option_id {
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_LIST,
    OPTION_EXCLUDED,
    OPTION_QUERY,
    OPTION_UNIT,
    OPTION_XML,
    OPTION_ID,
    OPTION_FILE,
    OPTION_LOOP,
    OPTION_LOOP_MS,
    OPTION_DISPLAY,
    OPTION_FORMAT,
    OPTION_ERROR_ON_WARNING
};

enum takes { TAKES_NOTHING, TAKES_TEXT, MAY_TAKE_NUMBER };

static const struct option {
    const char *letter, *name;
    enum option_id id;
    enum takes takes;
} known[] = {
    { "-h", "--help", OPTION_HELP, TAKES_NOTHING },
    { "--version", "--version", OPTION_VERSION, TAKES_NOTHING },
    { "-L", "--list-gpus", OPTION_LIST, TAKES_NOTHING },
    { "-B", "--list-excluded-gpus", OPTION_EXCLUDED, TAKES_NOTHING },
    { "-q", "--query", OPTION_QUERY, TAKES_NOTHING },
    { "-u", "--unit", OPTION_UNIT, TAKES_NOTHING },
    { "-x", "--xml-format", OPTION_XML, TAKES_NOTHING },
    { "-i", "--id", OPTION_ID, TAKES_TEXT },
    { "-f", "--filename", OPTION_FILE, TAKES_TEXT },
    { "-l", "--loop", OPTION_LOOP, MAY_TAKE_NUMBER },
    { "-lms", "--loop-ms", OPTION_LOOP_MS, TAKES_TEXT },
    { "-d", "--display", OPTION_DISPLAY, TAKES_TEXT },
    { "--format", "--format", OPTION_FORMAT, TAKES_TEXT },
    { "-eow", "--error-on-warning", OPTION_ERROR_ON_WARNING, TAKES_NOTHING },
};

static const char try_help[] = "Please run 'nvidia-smi -h' for help.\n";

static int parse_displays(const char *list, unsigned int *displays)
{
    for (;;) {
        size_t length = strcspn(list, ",");
        unsigned int bit = display_of(list, length);

        if (!bit)
            return complain("\"%.*s\" is not a display type for -d. %s", (int)length, list,
                            try_help);
        *displays |= bit;
        if (!list[length])
            return 0;
        list += length + 1;
    }
}

static int parse_format(const char *list, struct options *o)
{
    bool csv = false;

    for (;;) {
        size_t length = strcspn(list, ",");

        if (length == 3 && !strncmp(list, "csv", 3))
            csv = true;
        else if (length == 8 && !strncmp(list, "noheader", 8))
            o->no_header = true;
        else if (length == 7 && !strncmp(list, "nounits", 7))
            o->no_units = true;
        else
            return complain("\"%.*s\" is not a format for --format. %s", (int)length, list,
                            try_help);
        if (!list[length])
            break;
        list += length + 1;
    }
    o->has_format = csv;
    return csv ? 0 : complain("--format= needs \"csv\". %s", try_help);
}

static int parse_loop(const char *text, long unit_ms, long *loop_ms)
{
    long number = 5;

    if (text && !arguments_number(text, 1, 86400000 / unit_ms, &number))
        return complain("\"%s\" is not a period to loop at. %s", text, try_help);
    *loop_ms = number * unit_ms;
    return 0;
}

/* -h prints itself; the status of every other is 0 or after a complaint. */
static int apply(struct options *o, enum option_id id, const char *value)
{
    switch (id) {
    case OPTION_HELP:
        help_print(stdout);
        exit(0);
    case OPTION_VERSION:
        o->mode = MODE_VERSION;
        return 0;
    case OPTION_LIST:
        o->mode = MODE_LIST;
        return 0;
    case OPTION_EXCLUDED:
        o->mode = MODE_EXCLUDED;
        return 0;
    case OPTION_QUERY:
        o->mode = MODE_QUERY;
        return 0;
    case OPTION_UNIT:
        o->units = true;
        return 0;
    case OPTION_XML:
        o->xml = true;
        return 0;
    case OPTION_ID:
        o->ids = value;
        return 0;
    case OPTION_FILE:
        o->file = value;
        return 0;
    case OPTION_LOOP:
        return parse_loop(value, 1000, &o->loop_ms);
    case OPTION_LOOP_MS:
        return parse_loop(value, 1, &o->loop_ms);
    case OPTION_DISPLAY:
        return parse_displays(value, &o->displays);
    case OPTION_FORMAT:
        return parse_format(value, o);
    default:
        o->error_on_warning = true;
        return 0;
    }
}

static const struct option *find_option(const char *word)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(word, known[i].letter) || !strcmp(word, known[i].name))
            return &known[i];
    return NULL;
}

/* An option's word without "=value", which *value gets. */
static void split(const char *argument, char *word, size_t size, const char **value)
{
    size_t length = strcspn(argument, "=");

    snprintf(word, size, "%.*s", (int)length, argument);
    *value = argument[length] ? argument + length + 1 : NULL;
}

/* The value of an option: behind its '=', or the next argument. */
static int need_value(const char **value, int *i, int argc, char **argv)
{
    if (!*value && *i + 1 < argc)
        *value = argv[++*i];
    return *value && **value ? 0 : complain("Option %s needs a value. %s", argv[*i], try_help);
}

static int add_change(struct options *o, const struct change_kind *kind, const char *value)
{
    if (o->change_count == CHANGES_MAX)
        return complain("Too many changes at once. %s", try_help);
    o->changes[o->change_count++] = (struct change){ kind, value };
    o->mode = MODE_CHANGE;
    return 0;
}

static int parse_one(struct options *o, int *i, int argc, char **argv)
{
    const struct option *option;
    const struct change_kind *kind;
    const struct csv_kind *csv;
    const char *value;
    char word[64];
    int status;

    split(argv[*i], word, sizeof(word), &value);
    option = find_option(word);
    if (option) {
        if (option->takes == TAKES_NOTHING && value)
            return complain("Option %s takes no value. %s", word, try_help);
        if (option->takes == TAKES_TEXT && (status = need_value(&value, i, argc, argv)) != 0)
            return status;
        if (option->takes == MAY_TAKE_NUMBER && !value && *i + 1 < argc && argv[*i + 1][0] != '-')
            value = argv[++*i];
        return apply(o, option->id, value);
    }
    if (!strncmp(word, "--help-", 7) && (csv = csv_find(word + 7))) {
        csv_help(stdout, csv);
        exit(0);
    }
    if (!strncmp(word, "--", 2) && (csv = csv_find(word + 2))) {
        o->csv = csv;
        o->mode = MODE_CSV;
        if ((status = need_value(&value, i, argc, argv)) != 0)
            return status;
        o->fields = value;
        return 0;
    }
    kind = change_find(word);
    if (!kind)
        return complain("Invalid combination of input arguments: %s. %s", argv[*i], try_help);
    if (change_takes_argument(kind) && (status = need_value(&value, i, argc, argv)) != 0)
        return status;
    return add_change(o, kind, value);
}

/* What makes no sense together. */
static int check(const struct options *o)
{
    if ((o->xml || o->displays || o->units) && o->mode != MODE_QUERY)
        return complain("Invalid combination of input arguments: -x, -d and -u go with -q. %s",
                        try_help);
    if (o->has_format && o->mode != MODE_CSV)
        return complain("Invalid combination of input arguments: --format= goes with --query-…. %s",
                        try_help);
    if (o->loop_ms && (o->mode == MODE_CHANGE || o->mode == MODE_VERSION))
        return complain("Invalid combination of input arguments: -l shows, and changes nothing. %s",
                        try_help);
    if (o->csv && o->mode != MODE_CSV)
        return complain("Invalid combination of input arguments. %s", try_help);
    return o->mode == MODE_CSV ? csv_check(o) : 0;
}

static int parse(struct options *o, int argc, char **argv)
{
    int status = 0;

    for (int i = 1; status == 0 && i < argc; i++)
        status = parse_one(o, &i, argc, argv);
    return status ? status : check(o);
}

/* --- running ------------------------------------------------------------------------------------ */

static int show(FILE *file, struct gpus *gpus, const struct options *o, bool first)
{
    switch (o->mode) {
    case MODE_LIST:
        return list_print(file, gpus);
    case MODE_EXCLUDED:
        return excluded_print(file);
    case MODE_QUERY:
        return query_print(file, gpus, o);
    case MODE_CSV:
        return csv_print(file, gpus, o, first);
    case MODE_VERSION:
        return version_print(file);
    default:
        return summary_print(file, gpus);
    }
}

static int one_pass(FILE *file, struct gpus *gpus, const struct options *o, bool first)
{
    int status;

    if (o->mode == MODE_CHANGE)
        return changes_apply(file, gpus, o);
    for (unsigned int i = 0; i < gpus->count && !first; i++)
        gpu_fresh(&gpus->items[i]);
    api_hold();
    status = show(file, gpus, o, first);
    api_release();
    return status;
}

static int run(const struct options *o)
{
    FILE *file = o->file ? fopen(o->file, "w") : stdout;
    bool needs_gpus = o->mode != MODE_VERSION && o->mode != MODE_EXCLUDED;
    struct gpus gpus = { 0 };
    int status;

    if (!file)
        return complain("Cannot write to '%s': %s.", o->file, strerror(errno));
    status = library_start();
    if (status == 0 && needs_gpus)
        status = gpus_open(&gpus, o->ids);
    for (bool first = true; status == 0; first = false) {
        status = one_pass(file, &gpus, o, first);
        if (!o->loop_ms)
            break;
        wait_period(file, o->loop_ms);
    }
    gpus_close(&gpus);
    if (fclose(file) != 0 && status == 0)
        status = EXIT_OTHER;
    return status;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = { { "dmon", monitor_devices },
                     { "pmon", monitor_processes },
                     { "topo", topology },
                     { "nvlink", links },
                     { "mig", mig } };
    struct options options = { .mode = MODE_SUMMARY };
    int status;

    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 2, argv + 2);
    status = parse(&options, argc, argv);
    return status ? status : run(&options);
}
