/*
 * Pairs: "name=value,name=value". See pairs.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/pairs.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "sim/why.h"

static int hex(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* In place. False when a % is not followed by two digits, or something is no printable character. */
static bool decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        char c = *from;

        if (c == '%') {
            if (hex(from[1]) < 0 || hex(from[2]) < 0)
                return false;
            c = (char)(hex(from[1]) << 4 | hex(from[2]));
            from += 2;
        }
        if (iscntrl((unsigned char)c))
            return false;
        *to++ = c;
    }
    *to = '\0';
    return true;
}

static char *trimmed(struct arena *arena, const char *from, size_t n)
{
    while (n && isspace((unsigned char)*from))
        from++, n--;
    while (n && isspace((unsigned char)from[n - 1]))
        n--;
    return arena_strndup(arena, from, n);
}

static int parse_one(const char *what, const char *at, size_t n, struct label *pair,
                     struct arena *arena, struct why *why)
{
    const char *equals = memchr(at, '=', n);
    char *name, *value;

    if (!equals)
        return why_set(why, EINVAL, "%s: each is NAME=VALUE, and one has no '='", what);
    name = trimmed(arena, at, (size_t)(equals - at));
    value = trimmed(arena, equals + 1, n - (size_t)(equals + 1 - at));
    if (!name || !value)
        return why_set(why, ENOMEM, "out of memory");
    if (!*name || strpbrk(name, " :\t\r\n"))
        return why_set(why, EINVAL, "%s: '%s' is not a name", what, name);
    if (!decode(value))
        return why_set(why, EINVAL,
                       "%s: the value of '%s' has a control character or a %% without two digits",
                       what, name);
    *pair = (struct label){ name, value };
    return 0;
}

int pairs_parse(const char *what, const char *text, struct label *pairs, size_t *count, size_t room,
                struct arena *arena, struct why *why)
{
    while (text && *text) {
        size_t n = strcspn(text, ",");
        int r;

        if (n && strspn(text, " ") < n) {
            if (*count == room)
                return why_set(why, EINVAL, "%s: at most %zu", what, room);
            r = parse_one(what, text, n, &pairs[*count], arena, why);
            if (r < 0)
                return r;
            ++*count;
        }
        text += n + (text[n] == ',');
    }
    return 0;
}
