/*
 * Stop: SIGINT and SIGTERM as a wish, to be seen at a good moment.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef FUSEFS_CLI_STOP_H
#define FUSEFS_CLI_STOP_H

extern volatile int stop_asked; /* 0, or the signal's number */

/* From now on; what waits is interrupted. A second signal ends the program as usual. */
void stop_listen(void);

#endif
