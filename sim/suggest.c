/*
 * Suggest: "did you mean …" for a name that is not one of the allowed ones. See suggest.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sim/text.h"

enum { LONGEST = 64, LISTED = 40 };

/* Case, and the choice between blank, dash and underscore, are the commonest slips: they cost nothing. */
static int folded(char c)
{
    if (c == '-' || c == ' ')
        return '_';
    return tolower((unsigned char)c);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;

    return m < c ? m : c;
}

/* Edit distance where swapping two neighbours is one edit. Names longer than LONGEST are never near. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[3][LONGEST + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *now = row[i % 3], *up = row[(i + 2) % 3], *upup = row[(i + 1) % 3];

        now[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            int ca = folded(a[i - 1]), cb = folded(b[j - 1]);

            now[j] = min3(up[j] + 1, now[j - 1] + 1, up[j - 1] + (ca != cb));
            if (i > 1 && j > 1 && ca == folded(b[j - 2]) && cb == folded(a[i - 2]) &&
                upup[j - 2] + 1 < now[j])
                now[j] = upup[j - 2] + 1;
        }
    }
    return row[n % 3][m];
}

/* "H100" is the beginning of "H100-80GB-HBM3": whoever writes it means that, not "H200". */
static bool is_beginning(const char *found, const char *name)
{
    size_t n = strlen(found);

    if (n < 3)
        return false;
    for (size_t i = 0; i < n; i++)
        if (folded(found[i]) != folded(name[i]))
            return false;
    return true;
}

/* Twice the edits, so that a beginning stands between a perfect match and one edit. */
static unsigned remoteness(const char *found, const char *name)
{
    unsigned edits = distance(found, name);

    return edits && is_beginning(found, name) ? 1 : 2 * edits;
}

const char *suggest_nearest(const char *found, suggest_names *name_at, const void *names)
{
    unsigned length = (unsigned)strlen(found), edits = length / 3 + 1, best;
    const char *nearest = NULL, *name;

    /* With as many edits as letters any name could be reached. */
    best = 2 * (edits + 1 < length ? edits + 1 : length);
    for (int i = 0; (name = name_at(names, i)); i++) {
        unsigned d = remoteness(found, name);

        if (d < best) {
            best = d;
            nearest = name;
        }
    }
    return nearest;
}

void suggest_add(struct text *out, const char *found, suggest_names *name_at, const void *names)
{
    const char *nearest = suggest_nearest(found, name_at, names), *name;
    int count = 0;

    while (name_at(names, count))
        count++;
    if (nearest)
        text_addf(out, "; did you mean '%s'?", nearest);
    if (count > LISTED && nearest)
        return; /* a long list would hide the answer */
    text_add(out, nearest ? " allowed: " : "; allowed: ");
    for (int i = 0; i < LISTED && (name = name_at(names, i)); i++)
        text_addf(out, "%s%s", i ? ", " : "", name);
    if (count > LISTED)
        text_addf(out, " and %d more", count - LISTED);
}

const char *suggest_from_strings(const void *names, int i)
{
    return ((const char *const *)names)[i];
}
