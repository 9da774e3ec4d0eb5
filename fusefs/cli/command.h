/*
 * Command: one row says everything about a subcommand of the fakegpufs program.
 *
 * From the row come dispatch, the reading of options, `--help`, the sentences about bad usage, the man
 * page, the completions of three shells and docs/commands.md. A command's file defines its row beside
 * its code; commands.c lists the rows. To add a command: define `const struct command command_NAME`,
 * declare it below, list it in commands.c.
 *
 * A row's run function is called with options that were read and operands that were counted; it returns
 * the exit code. Bad usage is one sentence on standard error and EXIT_USAGE, through command_usage; a
 * failure is one sentence and 1, through command_fail.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_COMMAND_H
#define FUSEFS_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command;
struct text;
struct why;

enum { EXIT_USAGE = 64 }; /* as in sysexits.h */

#define DEFAULT_MOUNT "/run/fakegpufs"

/* What an option's argument, or an operand, is: for completions. */
enum complete {
    COMPLETE_NOTHING,
    COMPLETE_FILE,
    COMPLETE_DIRECTORY,
    COMPLETE_PROGRAM,
    COMPLETE_MODEL,
    COMPLETE_PROFILE,
    COMPLETE_METRIC,
    COMPLETE_GPU,     /* of the mount that is there */
    COMPLETE_COMMAND, /* of this program */
};

/* Where an option's value goes to. */
enum option_kind {
    OPTION_FLAG,  /* bool */
    OPTION_TEXT,  /* const char *; one of `words` where there are any */
    OPTION_TIME,  /* int64_t, ns, above zero */
    OPTION_COUNT, /* int64_t, not below zero */
    OPTION_EACH,  /* struct option_list: may be given several times */
};

enum { OPTION_LIST_MAX = 256 };

struct option_list {
    const char *items[OPTION_LIST_MAX]; /* of the command line */
    int count;
};

struct command_option {
    const char *name; /* without dashes; NULL ends the table */
    char letter;      /* 0: none */
    const char *argument;
    enum option_kind kind;
    size_t offset;    /* in the command's struct of options */
    const char *help; /* half a line; NULL: shares the line of the next row */
    const char *const *words;
    enum complete complete;
};

/* OPTION("config", 'c', "FILE", OPTION_TEXT, struct options, config, "what it is", .complete = …) */
/* clang-format off */
#define OPTION(name_, letter_, argument_, kind_, type, field, ...)                       \
    { .name = name_, .letter = letter_, .argument = argument_, .kind = kind_,            \
      .offset = offsetof(type, field), .help = __VA_ARGS__ }
/* clang-format on */

enum operand_count {
    OPERAND_ONE,
    OPERAND_OPTIONAL,
    OPERAND_MANY,    /* one or more; the last row */
    OPERAND_PROGRAM, /* a command line: behind its first word nothing is an option of ours */
    OPERAND_PROGRAM_OPTIONAL, /* the same, or nothing */
};

struct command_operand {
    const char *name; /* "MOUNTPOINT"; NULL ends the table */
    enum operand_count count;
    const char *const *words;
    enum complete complete;
};

/* For the man page: what an exit code means. 0, 1 and 64 are the same everywhere and said there. */
struct command_exit {
    const char *code, *meaning; /* NULL ends the table */
};

struct command_call {
    const struct command *command;
    const void *options; /* the command's own struct, with defaults where nothing was given */
    int argc;            /* operands */
    char **argv;         /* NULL-terminated */
};

typedef int command_fn(const struct command_call *call);

struct command {
    const char *name;    /* "mount"; "config check" is `check` of the group `config` */
    const char *summary; /* half a line, for lists */
    /*
     * Paragraphs with an empty line between them; a line that begins with a blank is kept as it is. The
     * man page and docs/commands.md have `more` behind it, which need not fit a screen.
     */
    const char *text, *more;
    void (*add_text)(struct text *out); /* appends to `text` what is in a table of the command */
    const struct command_option *options;
    const struct command_operand *operands;
    const char *examples[2];
    const struct command_exit *exits;
    size_t options_size;
    const void *defaults; /* NULL: zeros */
    command_fn *run;
};

extern const struct command *const commands[]; /* NULL-terminated, in the order of the help */

extern const struct command command_mount, command_umount, command_run, command_exec,
    command_status, command_cdi, command_fault, command_profile, command_clock_show,
    command_clock_speed, command_clock_pause, command_clock_resume, command_clock_step,
    command_config_check, command_config_show, command_config_diff, command_config_schema,
    command_simulate, command_models, command_metrics, command_paths, command_scenario,
    command_record, command_replay, command_help;

/* Runs what the words behind the program's name ask for: the exit code. */
int command_main(int argc, char **argv);

/* "fakegpufs NAME: sentence; see …" on standard error. Returns EXIT_USAGE. */
int command_usage(const struct command_call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* "fakegpufs: sentence" on standard error; releases the sentence. Returns 1. */
int command_fail(struct why *why);

/* --- for what is made from the rows ----------------------------------------------------------- */

/* The row of that name, or the first of that group; NULL. */
const struct command *command_find(const char *name);

/* The length of the name's first word: rows of a group have it in common. */
size_t command_group(const struct command *command);
bool command_same_group(const struct command *a, const struct command *b);

/* The row behind this one in its group, or NULL. */
const struct command *command_next_in_group(const struct command *command);

/* Appends "mount [OPTION …] [MOUNTPOINT]". */
void command_synopsis(struct text *out, const struct command *command);

/* The whole `--help` of one row; of a group where it has several rows and `name` is the group's. */
void command_screen(struct text *out, const struct command *command);
void command_group_screen(struct text *out, const struct command *first);

/* Appends the words with which a completion can be made, one blank between them; "" where there are none. */
void command_words(struct text *out, const char *const *words, enum complete complete);

/* Append a man page (of a whole group), docs/commands.md, and a shell's completions. */
void command_manual(struct text *out, const struct command *first);
void command_program_manual(struct text *out);
void command_markdown(struct text *out);
void command_completion(struct text *out, const char *shell);

/* --- reading options -------------------------------------------------------------------------- */

/*
 * Reads `argv` (argv[0] is not looked at) into the options and operands. 0, EXIT_USAGE after a sentence,
 * or -1 when help was asked for.
 */
int command_parse(struct command_call *call, void *options, int argc, char **argv);

#endif
