/*
 * Device nodes: what of a mount has its nodes in /dev. See device_nodes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/device_nodes.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mocknvml/mig.h"

static bool node_is_there(const char *name, int number)
{
    char path[64];

    snprintf(path, sizeof(path), "/dev/%s%d", name, number);
    return access(path, F_OK) == 0;
}

/* The minor number of the GPU's node, or -1. */
static int gpu_minor(struct reader *reader, int index)
{
    char file[64], text[16];
    int minor;

    snprintf(file, sizeof(file), "gpus/%d/identity/minor_number", index);
    if (reader_text(reader, file, text, sizeof(text)) < 0 || sscanf(text, "%d", &minor) != 1)
        return -1;
    return minor;
}

bool nodes_have_gpu(struct reader *reader, int index)
{
    int minor = gpu_minor(reader, index);

    return minor >= 0 && node_is_there("nvidia", minor);
}

/* Whether the capability that `part` of a GPU's mig/ is opened with has its node. */
static bool capability_has_node(struct reader *reader, int gpu, const char *part)
{
    static const char label[] = "DeviceFileMinor: ";
    char file[128], text[128];
    int minor;

    snprintf(file, sizeof(file), "proc/driver/nvidia/capabilities/gpu%d/mig/%s/access", gpu, part);
    if (reader_text(reader, file, text, sizeof(text)) < 0 ||
        strncmp(text, label, sizeof(label) - 1) ||
        sscanf(text + sizeof(label) - 1, "%d", &minor) != 1)
        return false;
    return node_is_there("nvidia-caps/nvidia-cap", minor);
}

bool nodes_have_mig(struct reader *reader, int index, const struct mig_name *m)
{
    char gi[16], ci[32];
    int minor = gpu_minor(reader, index);

    snprintf(gi, sizeof(gi), "gi%d", m->gi);
    snprintf(ci, sizeof(ci), "gi%d/ci%d", m->gi, m->ci);
    return minor >= 0 && capability_has_node(reader, minor, gi) &&
           capability_has_node(reader, minor, ci);
}

bool nodes_decide(void)
{
    DIR *dir = access("/proc/driver/nvidia", F_OK) == 0 ? NULL : opendir("/dev");
    struct dirent *entry;
    bool found = false;

    while (dir && !found && (entry = readdir(dir)))
        found = !strncmp(entry->d_name, "nvidia", 6) && isdigit((unsigned char)entry->d_name[6]);
    if (dir)
        closedir(dir);
    return found;
}
