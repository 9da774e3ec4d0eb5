/*
 * Config: what the texts of a configuration look like. See config_shapes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/config_shapes.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/node_names.h"

static bool matches(const char *text, const char *shape)
{
    for (; *shape; shape++, text++) {
        if (*shape == 'x' ? !isxdigit((unsigned char)*text) : *shape != *text)
            return false;
    }
    return !*text;
}

bool uuid_ok(const char *text)
{
    return matches(text, "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
}

int bus_id_parse(const char *text, uint32_t *domain, uint32_t *bus, uint32_t *device,
                 uint32_t *function)
{
    if (!matches(text, "xxxxxxxx:xx:xx.x") && !matches(text, "xxxx:xx:xx.x"))
        return -EINVAL;
    if (sscanf(text, "%x:%x:%x.%x", domain, bus, device, function) != 4)
        return -EINVAL;
    return *device > 31 || *function > 7 ? -EINVAL : 0;
}

static bool bus_id_ok(const char *text)
{
    uint32_t parts[4];

    return bus_id_parse(text, &parts[0], &parts[1], &parts[2], &parts[3]) == 0;
}

static bool serial_ok(const char *text)
{
    for (; *text; text++)
        if (!isdigit((unsigned char)*text))
            return false;
    return true;
}

static bool dotted(const char *text, int least, int most)
{
    int parts = 0;

    do {
        if (!isdigit((unsigned char)*text))
            return false;
        while (isdigit((unsigned char)*text))
            text++;
        parts++;
    } while (*text++ == '.');
    return !text[-1] && parts >= least && parts <= most;
}

static bool driver_version_ok(const char *text)
{
    return dotted(text, 2, 3);
}

static bool cuda_version_ok(const char *text)
{
    return dotted(text, 2, 2);
}

static bool nvml_version_ok(const char *text)
{
    return dotted(text, 2, 4);
}

/* "0-31,64-95": numbers and ranges that go up. */
static bool cpu_list_ok(const char *text)
{
    unsigned long first, last;
    char *end;

    do {
        if (!isdigit((unsigned char)*text))
            return false;
        first = last = strtoul(text, &end, 10);
        if (*end == '-') {
            if (!isdigit((unsigned char)end[1]))
                return false;
            last = strtoul(end + 1, &end, 10);
        }
        if (first > last || last > 65535)
            return false;
        text = end + 1;
    } while (*end == ',');
    return !*end;
}

/* clang-format off */
const struct bind_shape uuid_shape = {
    uuid_ok, "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx in hexadecimal",
    "^GPU-[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
};
const struct bind_shape serial_shape = { serial_ok, "digits", "^[0-9]+$" };
const struct bind_shape bus_id_shape = {
    bus_id_ok, "a bus id in hexadecimal like 0000:06:00.0, its device at most 1f and its function at most 7",
    "^([0-9a-fA-F]{4}){1,2}:[0-9a-fA-F]{2}:[01][0-9a-fA-F][.][0-7]$",
};
const struct bind_shape driver_version_shape = {
    driver_version_ok, "X.Y or X.Y.Z", "^[0-9]+([.][0-9]+){1,2}$",
};
const struct bind_shape cuda_version_shape = { cuda_version_ok, "X.Y", "^[0-9]+[.][0-9]+$" };
const struct bind_shape nvml_version_shape = {
    nvml_version_ok, "two to four numbers with dots", "^[0-9]+([.][0-9]+){1,3}$",
};
const struct bind_shape node_name_shape = {
    node_name_ok, "a host name: letters, digits, '-' and '.', beginning with a letter or digit",
    "^[A-Za-z0-9][A-Za-z0-9.-]*$",
};
const struct bind_shape node_names_shape = {
    node_names_ok, "a host name, or several as node-[0-511]: at most 4096, the smaller number first",
    "^[A-Za-z0-9.-]*([[][0-9]{1,9}-[0-9]{1,9}[]])?[A-Za-z0-9.-]*$",
};
const struct bind_shape cpu_list_shape = {
    cpu_list_ok, "CPUs below 65536 like 0-31,64-95", "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$",
};
/* clang-format on */
