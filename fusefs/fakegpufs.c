/*
 * fakegpufs: the program. Its commands are rows of fusefs/cli/command.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/command.h"

int main(int argc, char **argv)
{
    return command_main(argc, argv);
}
