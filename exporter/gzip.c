/*
 * Gzip: bytes made smaller. See gzip.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/gzip.h"

#include <libdeflate.h>
#include <stdlib.h>

/* Metrics repeat themselves: the lowest level already makes them several times smaller. */
enum { LEVEL = 1 };

void gzip_add(struct text *out, const char *data, size_t length)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
    size_t room = c ? libdeflate_gzip_compress_bound(c, length) : 0, n = 0;
    char *buf = c ? malloc(room) : NULL;

    if (buf)
        n = libdeflate_gzip_compress(c, data, length, buf, room);
    if (n)
        text_addn(out, buf, n);
    else
        out->failed = true;
    free(buf);
    libdeflate_free_compressor(c);
}
