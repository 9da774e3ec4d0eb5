/*
 * Gzip: bytes made smaller. See gzip.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/gzip.h"

#include <stdint.h>
#include <zlib.h>

/*
 * Metrics repeat themselves: the lowest level already makes them fifteen times smaller, in a third of the
 * time. 15 bits of window, and 16 more for gzip's head.
 */
enum { LEVEL = 1, WINDOW_BITS = 15 + 16, MEMORY_LEVEL = 8 };

void gzip_add(struct text *out, const char *data, size_t length)
{
    char chunk[16384];
    z_stream z = { .next_in = (Bytef *)(void *)(uintptr_t)data, .avail_in = (uInt)length };
    int r = deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY);

    if (r != Z_OK) {
        out->failed = true;
        return;
    }
    do {
        z.next_out = (Bytef *)chunk;
        z.avail_out = sizeof(chunk);
        r = deflate(&z, Z_FINISH);
        text_addn(out, chunk, sizeof(chunk) - z.avail_out);
    } while (r == Z_OK || r == Z_BUF_ERROR);
    out->failed |= r != Z_STREAM_END;
    deflateEnd(&z);
}
