/*
 * Smi: what was asked for on the command line, and the commands that do it.
 *
 * A command prints to a stream and returns the program's exit status: 0, or the number of NVML's error,
 * which are the documented statuses; EXIT_OTHER for what has none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_SMI_H
#define SMI_SMI_H

#include <stdio.h>

#include "mocknvml/smi/gpu.h"

enum { EXIT_INVALID = 2, EXIT_OTHER = 255, CHANGES_MAX = 16 };

enum mode {
    MODE_SUMMARY,
    MODE_LIST,
    MODE_EXCLUDED,
    MODE_QUERY,
    MODE_CSV,
    MODE_CHANGE,
    MODE_VERSION,
    MODE_DTD
};

struct change_kind;

struct change {
    const struct change_kind *kind;
    const char *argument;
};

struct options {
    enum mode mode;
    const char *ids;  /* NULL: all GPUs */
    const char *file; /* NULL: standard output */
    long loop_ms;     /* 0: once */
    bool units;       /* -u: units rather than GPUs */
    bool xml;
    bool dtd; /* -q -x: with the DTD in it */
    unsigned int displays;

    const struct csv_kind *csv;
    const char *fields;
    bool has_format, no_header, no_units;

    struct change changes[CHANGES_MAX];
    int change_count;
    bool error_on_warning;
};

/* The GPUs that -i chose, in its order. */
struct gpus {
    struct gpu *items;
    unsigned int count;
    unsigned int present; /* of all that there are */
};

/* All GPUs, or those of a list: indices, UUIDs, bus ids, serial numbers. Complains by itself; exit status. */
int gpus_open(struct gpus *gpus, const char *ids);

/* The same for who has not started the library yet. */
int gpus_start(struct gpus *gpus, const char *ids);
void gpus_close(struct gpus *gpus);

/* The exit status for an error. */
int exit_status(nvmlReturn_t result);

/* One pass each. */
int summary_print(FILE *file, struct gpus *gpus);
int list_print(FILE *file, struct gpus *gpus);
int excluded_print(FILE *file);
int query_print(FILE *file, struct gpus *gpus, const struct options *options);
int version_print(FILE *file);

/* The log of -q alone: what is said about the node and the GPUs. */
void log_print(FILE *file, struct gpus *gpus, const struct options *options);

/* The DTD of the XML, that of units or of GPUs, and its name. */
int dtd_print(FILE *file, bool units);
const char *xml_dtd(bool units);

/* Logs, one after the other, that together have every element; asks no library. */
void specimens_print(FILE *file, bool units);

/* --query-…: looks at the fields first, then prints; `first` with the column heads. */
const struct csv_kind *csv_find(const char *option);
int csv_check(const struct options *options);
int csv_print(FILE *file, struct gpus *gpus, const struct options *options, bool first);
void csv_help(FILE *file, const struct csv_kind *kind);
void csv_kinds_help(FILE *file);

/* Setters. */
const struct change_kind *change_find(const char *option);
bool change_takes_argument(const struct change_kind *kind);
int changes_apply(FILE *file, struct gpus *gpus, const struct options *options);
void changes_help(FILE *file);

/* Commands with options of their own, in the order of -h; ends with an empty one. */
struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* with what stands behind its name */
    const char *help;
};

extern const struct command smi_commands[];

int monitor_devices(int argc, char **argv);
int monitor_processes(int argc, char **argv);
int topology(int argc, char **argv);
int links(int argc, char **argv);
int mig(int argc, char **argv);
int pci(int argc, char **argv);
int chip_links(int argc, char **argv);
int conf_compute(int argc, char **argv);
int drain(int argc, char **argv);
int vgpu(int argc, char **argv);

/* Loads and initializes the library; complains by itself; exit status. */
int library_start(void);

void help_print(FILE *file);

/* A line of it: "-i, --id=" and what it does. A NULL letter has none. */
void help_line(FILE *file, const char *letter, const char *name, bool takes, const char *help);

/* "Invalid combination of input arguments": says so and gives the exit status. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Until the next multiple of the period since the first call; flushes first: false when that fails. */
bool wait_period(FILE *file, long period_ms);

/* The exit status, which is no longer 0 when not all could be written. */
int output_close(FILE *file, int status);

#endif
