/*
 * Xids: what the numbers of Xid errors mean, in dcgm-exporter's words.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_XIDS_H
#define EXPORTER_XIDS_H

#include <stdint.h>

/* Never NULL: "Unknown Error" for a number it does not know. */
const char *xid_message(int64_t xid);

#endif
