/*
 * Stop: SIGINT and SIGTERM as a wish. See stop.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/stop.h"

#include <signal.h>
#include <stddef.h>

volatile int stop_asked;

static void note(int signal)
{
    stop_asked = signal;
}

void stop_listen(void)
{
    /* Without SA_RESTART: a sleep ends. */
    struct sigaction action = { .sa_handler = note, .sa_flags = (int)SA_RESETHAND };

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
