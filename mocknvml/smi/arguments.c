/*
 * Arguments: the options of a subcommand. See arguments.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/smi.h"

bool arguments_number(const char *text, long min, long max, long *number)
{
    char *end;

    if (!text || !*text)
        return false;
    errno = 0;
    *number = strtol(text, &end, 10);
    return errno == 0 && *end == '\0' && *number >= min && *number <= max;
}

/* The row that `word` names, up to a '='. */
static const struct argument *find(const struct argument *rows, const char *word)
{
    size_t length = strcspn(word, "=");

    for (; rows->name; rows++)
        if ((strlen(rows->name) == length && !strncmp(rows->name, word, length)) ||
            (rows->letter && strlen(rows->letter) == length &&
             !strncmp(rows->letter, word, length)))
            return rows;
    return NULL;
}

int arguments_parse(const struct argument *rows, const char *command, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const struct argument *row = find(rows, argv[i]);
        const char *equals = strchr(argv[i], '=');

        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
            arguments_help(rows, command);
            return -1;
        }
        if (!row || (equals && !row->text))
            return complain(
                "Invalid argument to \"%s\": %s. Please run 'nvidia-smi %s -h' for help.", command,
                argv[i], command);
        if (row->flag)
            *row->flag = true;
        if (row->text && equals)
            *row->text = equals + 1;
        else if (row->text && i + 1 < argc && !(row->flag && *argv[i + 1] == '-'))
            *row->text = argv[++i];
        else if (row->text && !row->flag)
            return complain("Missing value for %s. Please run 'nvidia-smi %s -h' for help.",
                            argv[i], command);
    }
    return 0;
}

void arguments_help(const struct argument *rows, const char *command)
{
    printf("nvidia-smi %s [options]\n\n", command);
    for (; rows->name; rows++) {
        char names[64];

        snprintf(names, sizeof(names), "%s%s%s%s", rows->letter ? rows->letter : "",
                 rows->letter ? ", " : "", rows->name, rows->text ? "=" : "");
        printf("    %-28s", names);
        if (strlen(names) >= 28)
            printf("\n%32s", "");
        puts(rows->help);
    }
    printf("    %-28s%s\n", "-h, --help", "Show these options and exit.");
}
