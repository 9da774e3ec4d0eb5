/*
 * Accept: what a client says it can read. See accept.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/accept.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* One member of a list: what it names, and how much it is liked. */
struct choice {
    const char *name;
    size_t length;
    double quality;
    const char *parameters;
    size_t parameters_length;
};

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* The value of parameter `name`, or NULL. */
static const char *parameter(const struct choice *c, const char *name)
{
    const char *p = c->parameters, *end = p + c->parameters_length;
    size_t n = strlen(name);

    while (p < end) {
        p = skip_blanks(p + (*p == ';'));
        if (p + n < end && !strncasecmp(p, name, n) && p[n] == '=')
            return p + n + 1;
        while (p < end && *p != ';')
            p++;
    }
    return NULL;
}

/* Cuts the next member off the list. False behind the last. */
static bool next(const char **list, struct choice *c)
{
    const char *p = skip_blanks(*list), *quality;
    size_t length = strcspn(p, ",");

    if (!*p)
        return false;
    c->name = p;
    c->length = strcspn(p, ",; \t");
    c->parameters = p + c->length;
    c->parameters_length = length - c->length;
    quality = parameter(c, "q");
    c->quality = quality ? atof(quality) : 1;
    *list = p + length + (p[length] == ',');
    return true;
}

static bool is_named(const struct choice *c, const char *name)
{
    return c->length == strlen(name) && !strncasecmp(c->name, name, c->length);
}

bool accepts_openmetrics(const char *accept)
{
    double openmetrics = 0, text = 0;
    struct choice c;

    while (accept && next(&accept, &c)) {
        const char *version = parameter(&c, "version");

        if (is_named(&c, "application/openmetrics-text")) {
            if ((!version || !strncmp(version, "1.0.0", 5) || !strncmp(version, "0.0.1", 5)) &&
                c.quality > openmetrics)
                openmetrics = c.quality;
        } else if (is_named(&c, "text/plain") && c.quality > text) {
            text = c.quality;
        }
    }
    return openmetrics > 0 && openmetrics >= text;
}

bool accepts_gzip(const char *accept)
{
    double any = 0, gzip = -1;
    struct choice c;

    while (accept && next(&accept, &c)) {
        if (is_named(&c, "gzip") || is_named(&c, "x-gzip"))
            gzip = c.quality;
        else if (is_named(&c, "*"))
            any = c.quality;
    }
    return gzip >= 0 ? gzip > 0 : any > 0;
}
