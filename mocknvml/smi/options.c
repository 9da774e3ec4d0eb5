/*
 * Options: those of `nvidia-smi` itself, in one table that is read, checked and shown by -h. See options.h.
 *
 * Setters are in a table of their own (change.c), and so are the kinds of --query-… (csv.c).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/rows.h"

enum takes { TAKES_NOTHING, TAKES_TEXT, MAY_TAKE_NUMBER };

/* What an option does: its value is NULL where it has none. Exit status. */
typedef int applier(struct options *o, const char *value);

struct option {
    const char *letter, *name;
    applier *apply;
    enum takes takes;
    enum help_group group;
    const char *help;
};

/* The driver's tool says one sentence for all of it, on standard output; which one it was goes to standard error. */
static int misused(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int misused(const char *format, ...)
{
    va_list arguments;

    puts("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n");
    fflush(stdout);
    fputs("nvidia-smi: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_INVALID;
}

static const char try_help[] = "Please run 'nvidia-smi -h' for help.\n";

/* --- what they do ------------------------------------------------------------------------------- */

static int ask_help(struct options *o, const char *value)
{
    (void)o;
    (void)value;
    help_print(stdout);
    exit(0);
}

static int choose(struct options *o, enum mode mode)
{
    o->mode = mode;
    return 0;
}

static int ask_version(struct options *o, const char *value)
{
    (void)value;
    return choose(o, MODE_VERSION);
}

static int ask_list(struct options *o, const char *value)
{
    (void)value;
    return choose(o, MODE_LIST);
}

static int ask_excluded(struct options *o, const char *value)
{
    (void)value;
    return choose(o, MODE_EXCLUDED);
}

static int ask_query(struct options *o, const char *value)
{
    (void)value;
    return choose(o, MODE_QUERY);
}

static int set_units(struct options *o, const char *value)
{
    (void)value;
    o->units = true;
    return 0;
}

static int set_xml(struct options *o, const char *value)
{
    (void)value;
    o->xml = true;
    return 0;
}

static int set_dtd(struct options *o, const char *value)
{
    (void)value;
    o->dtd = true;
    return 0;
}

static int set_ids(struct options *o, const char *value)
{
    o->ids = value;
    return 0;
}

static int set_file(struct options *o, const char *value)
{
    o->file = value;
    return 0;
}

static int set_error_on_warning(struct options *o, const char *value)
{
    (void)value;
    o->error_on_warning = true;
    return 0;
}

static int parse_loop(const char *text, long unit_ms, long *loop_ms)
{
    long number = 5;

    if (text && !arguments_number(text, 1, 86400000 / unit_ms, &number))
        return complain("\"%s\" is not a period to loop at. %s", text, try_help);
    *loop_ms = number * unit_ms;
    return 0;
}

static int set_loop(struct options *o, const char *value)
{
    return parse_loop(value, 1000, &o->loop_ms);
}

static int set_loop_ms(struct options *o, const char *value)
{
    return parse_loop(value, 1, &o->loop_ms);
}

static int set_displays(struct options *o, const char *list)
{
    for (;;) {
        size_t length = strcspn(list, ",");
        unsigned int bit = display_of(list, length);

        if (!bit)
            return complain("\"%.*s\" is not a display type for -d. %s", (int)length, list,
                            try_help);
        o->displays |= bit;
        if (!list[length])
            return 0;
        list += length + 1;
    }
}

static int set_format(struct options *o, const char *list)
{
    bool csv = false;

    for (;;) {
        const char *word = list + strspn(list, " ");
        size_t length = strcspn(word, " ,");

        if (length == 3 && !strncmp(word, "csv", 3))
            csv = true;
        else if (length == 8 && !strncmp(word, "noheader", 8))
            o->no_header = true;
        else if (length == 7 && !strncmp(word, "nounits", 7))
            o->no_units = true;
        else
            return complain("\"%.*s\" is not a format for --format. %s", (int)length, word,
                            try_help);
        list = word + length + strspn(word + length, " ");
        if (*list != ',')
            break;
        list++;
    }
    if (*list)
        return complain("\"%s\" is not a format for --format. %s", list, try_help);
    o->has_format = csv;
    return csv ? 0 : complain("--format= needs \"csv\". %s", try_help);
}

/* --- the table ---------------------------------------------------------------------------------- */

/* clang-format off */
static const struct option known[] = {
    { "-h", "--help", ask_help, TAKES_NOTHING, HELP_GENERAL, "Show this and exit." },
    { NULL, "--version", ask_version, TAKES_NOTHING, HELP_GENERAL,
      "Show the versions of program, library and driver and exit." },
    { "-L", "--list-gpus", ask_list, TAKES_NOTHING, HELP_LIST, "One line per GPU and MIG device, with its UUID." },
    { "-B", "--list-excluded-gpus", ask_excluded, TAKES_NOTHING, HELP_LIST,
      "The same of GPUs that the driver leaves alone." },
    { "-i", "--id", set_ids, TAKES_TEXT, HELP_SHOWING,
      "Only these GPUs: indices, UUIDs, bus ids, serials, with commas." },
    { "-f", "--filename", set_file, TAKES_TEXT, HELP_SHOWING, "Write to this file rather than to the terminal." },
    { "-l", "--loop", set_loop, MAY_TAKE_NUMBER, HELP_SHOWING,
      "Again and again, at this period in seconds (5) until Ctrl+C." },
    { "-lms", "--loop-ms", set_loop_ms, TAKES_TEXT, HELP_SHOWING, "The same in milliseconds." },
    { "-q", "--query", ask_query, TAKES_NOTHING, HELP_QUERY, "Everything about GPUs." },
    { "-u", "--unit", set_units, TAKES_NOTHING, HELP_QUERY, "About units rather than GPUs." },
    { "-x", "--xml-format", set_xml, TAKES_NOTHING, HELP_QUERY, "As XML." },
    { NULL, "--dtd", set_dtd, TAKES_NOTHING, HELP_QUERY,
      "With -q -x: the DTD in the XML. Without -q: the DTD alone." },
    { "-d", "--display", set_displays, TAKES_TEXT, HELP_QUERY, "Only some of it, separated by commas; not with -x:" },
    { NULL, "--format", set_format, TAKES_TEXT, HELP_FIELDS,
      "Needed: csv, and after it noheader and nounits, separated by commas." },
    { "-eow", "--error-on-warning", set_error_on_warning, TAKES_NOTHING, HELP_CHANGES, "Take a warning for an error." },
};
/* clang-format on */

void options_help(FILE *file, enum help_group group)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].group != group)
            continue;
        help_line(file, known[i].letter, known[i].name, known[i].takes != TAKES_NOTHING,
                  known[i].help);
        if (known[i].apply == set_displays)
            displays_help(file);
    }
}

static const struct option *find_option(const char *word)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if ((known[i].letter && !strcmp(word, known[i].letter)) || !strcmp(word, known[i].name))
            return &known[i];
    return NULL;
}

/* --- reading ------------------------------------------------------------------------------------ */

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
    const char *option = argv[*i];

    if (!*value && *i + 1 < argc)
        *value = argv[++*i];
    return *value && **value ? 0 : complain("Option %s needs a value. %s", option, try_help);
}

static int parse_known(struct options *o, const struct option *option, const char *value, int *i,
                       int argc, char **argv)
{
    int status = 0;

    if (option->takes == TAKES_NOTHING && value)
        return complain("Option %s takes no value. %s", option->name, try_help);
    if (option->takes == TAKES_TEXT)
        status = need_value(&value, i, argc, argv);
    if (option->takes == MAY_TAKE_NUMBER && !value && *i + 1 < argc && argv[*i + 1][0] != '-')
        value = argv[++*i];
    return status ? status : option->apply(o, value);
}

static int parse_fields(struct options *o, const struct csv_kind *csv, const char *value, int *i,
                        int argc, char **argv)
{
    int status = need_value(&value, i, argc, argv);

    o->csv = csv;
    o->mode = MODE_CSV;
    o->fields = value;
    return status;
}

static int parse_change(struct options *o, const struct change_kind *kind, const char *value,
                        int *i, int argc, char **argv)
{
    int status = change_takes_argument(kind) ? need_value(&value, i, argc, argv) : 0;

    if (status != 0)
        return status;
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

    split(argv[*i], word, sizeof(word), &value);
    if ((option = find_option(word)))
        return parse_known(o, option, value, i, argc, argv);
    if (!strncmp(word, "--help-", 7) && (csv = csv_find(word + 7))) {
        csv_help(stdout, csv);
        exit(0);
    }
    if (!strncmp(word, "--", 2) && (csv = csv_find(word + 2)))
        return parse_fields(o, csv, value, i, argc, argv);
    if ((kind = change_find(word)))
        return parse_change(o, kind, value, i, argc, argv);
    return misused("there is no %s '%s'", *word == '-' ? "option" : "command", argv[*i]);
}

/* --dtd without -q is a thing of its own. */
static void settle(struct options *o)
{
    if (o->dtd && o->mode == MODE_SUMMARY)
        o->mode = MODE_DTD;
}

/* What makes no sense together. */
static int check(const struct options *o)
{
    bool is_query = o->mode == MODE_QUERY;

    if ((o->xml || o->displays) && !is_query)
        return misused("-x and -d go with -q");
    if (o->units && !is_query && o->mode != MODE_DTD)
        return misused("-u goes with -q or --dtd");
    if (o->dtd && o->mode != MODE_DTD && !o->xml)
        return misused("--dtd goes with -q -x, or alone");
    if (o->has_format && o->mode != MODE_CSV)
        return misused("--format= goes with --query-…");
    if (o->loop_ms && (o->mode == MODE_CHANGE || o->mode == MODE_VERSION || o->mode == MODE_DTD))
        return misused("-l goes with what shows GPUs");
    if (o->csv && o->mode != MODE_CSV)
        return misused("--query-… goes with nothing else that shows or changes something");
    return o->mode == MODE_CSV ? csv_check(o) : 0;
}

int options_parse(struct options *o, int argc, char **argv)
{
    int status = 0;

    for (int i = 1; status == 0 && i < argc; i++)
        status = parse_one(o, &i, argc, argv);
    settle(o);
    return status ? status : check(o);
}
