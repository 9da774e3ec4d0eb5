/*
 * Help: what `nvidia-smi -h` says: the tables of options, setters and commands, as they are. See smi.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "mocknvml/smi/options.h"

void help_line(FILE *file, const char *letter, const char *name, bool takes, const char *help)
{
    enum { COLUMN = 32 };
    char comma[16] = "";
    int width;

    if (letter)
        snprintf(comma, sizeof(comma), "%s,", letter);
    width = fprintf(file, "    %-6s%s%s", comma, name, takes ? "=" : "");
    if (width >= COLUMN) {
        fputc('\n', file);
        width = 0;
    }
    fprintf(file, "%*s%s\n", COLUMN - width, "", help);
}

static void title(FILE *file, const char *words)
{
    fprintf(file, "\n  %s:\n\n", words);
}

static void commands_help(FILE *file)
{
    for (const struct command *c = smi_commands; c->name; c++)
        fprintf(file, "    %-28s%s\n", c->name, c->help);
}

/* The version is the driver's, when there is one. */
void help_print(FILE *file)
{
    char version[TEXT_BYTES] = "N/A";

    if (api_load() == NVML_SUCCESS && ASK(Init_v2) == NVML_SUCCESS)
        get_node(NULL, NODE_DRIVER, version);
    fprintf(file,
            "NVIDIA System Management Interface -- v%s\n"
            "\n"
            "Shows GPUs and changes their settings through NVML, the management library of their "
            "driver.\n"
            "\n"
            "nvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n"
            "\n",
            version);
    options_help(file, HELP_GENERAL);
    title(file, "LIST OPTIONS");
    options_help(file, HELP_LIST);
    title(file, "SUMMARY OPTIONS");
    fprintf(file, "    %-28s%s\n", "<no arguments>",
            "A table of GPUs and of the processes that use them.");
    title(file, "QUERY OPTIONS");
    options_help(file, HELP_QUERY);
    title(file, "SELECTIVE QUERY OPTIONS, one of them, with the names of fields");
    csv_kinds_help(file);
    options_help(file, HELP_FIELDS);
    title(file, "WITH ANY OF THESE");
    options_help(file, HELP_SHOWING);
    title(file, "DEVICE MODIFICATION OPTIONS, with -i");
    changes_help(file);
    options_help(file, HELP_CHANGES);
    title(file, "COMMANDS, each with a -h of its own");
    commands_help(file);
    title(file, "EXIT STATUS");
    fputs("    0 all is well; 2 an argument is not valid; 3 the GPU cannot do that; 4 no "
          "permission;\n"
          "    6 no such GPU; 9 the driver is not loaded; 12 no library; 15 the GPU is lost;\n"
          "    255 anything else.\n",
          file);
}
