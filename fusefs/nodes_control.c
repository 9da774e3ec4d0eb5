/*
 * Node-wide nodes: control files, streams, the snapshot, and the driver root's programs and libraries.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "fusefs/errors.h"
#include "fusefs/nodes.h"
#include "sim/event.h"

/* --- clock ----------------------------------------------------------------------------------- */

static int show_clock(const struct node_ctx *cx, struct text *out)
{
    const struct node *n = &cx->world->node;

    text_addf(out, "%s\nspeed %.10g\nnow ", n->paused ? "paused" : "running", n->speed);
    unit_print(out, UNIT_NANOSECOND, n->now_ns);
    text_add(out, "\nstep ");
    unit_print(out, UNIT_NANOSECOND, cx->world->node_plan.step_ns);
    text_addf(out, "\ngeneration %" PRIu64 "\n", n->generation);
    return 0;
}

static int store_clock(const struct node_ctx *cx, const char *text, struct why *why)
{
    return sim_clock(cx->sim, text, why);
}

/* --- configuration --------------------------------------------------------------------------- */

static int show_config(const struct node_ctx *cx, struct text *out)
{
    text_add(out, text_str(cx->host->config));
    return 0;
}

static int store_config(const struct node_ctx *cx, const char *text, struct why *why)
{
    return config_apply_text(cx->sim, cx->host, text, "control/config", why);
}

int config_apply_text(struct sim *sim, const struct host *host, const char *text, const char *name,
                      struct why *why)
{
    struct config_options options = *host->options;
    struct config cfg;
    int r;

    options.name = name;
    r = config_parse(&cfg, text, strlen(text), &options, why);
    if (r < 0)
        return r;
    r = sim_apply(sim, &cfg, why);
    if (r == 0) {
        text_cut(host->config, 0);
        config_print(host->config, &cfg);
    }
    config_release(&cfg);
    return r;
}

static int show_last_error(const struct node_ctx *cx, struct text *out)
{
    return errors_show(cx->host->errors, ERRORS_NODE, 0, out);
}

/* --- installed files ------------------------------------------------------------------------- */

static const char *const file_names[] = {
    [LIBRARY_ML] = "libnvidia-ml.so.1",
    [LIBRARY_CUDA] = "libcuda.so.1",
    [PROGRAM_SMI] = "nvidia-smi",
};

/* Only what is installed is shown. */
static bool host_file_exists(const struct node_ctx *cx)
{
    return cx->host->files[cx->def->arg] > 0;
}

static int show_soname(const struct node_ctx *cx, struct text *out)
{
    text_addf(out, "%s.%s", cx->def->arg == LIBRARY_CUDA ? "libcuda.so" : "libnvidia-ml.so",
              cx->world->node_plan.driver_version);
    return 0;
}

/* Never 0, which stands for none. */
static int open_installed(const char *dir, const char *name)
{
    struct text path = TEXT_INIT;
    int fd, kept;

    text_addf(&path, "%s/%s", dir, name);
    fd = open(text_str(&path), O_RDONLY | O_CLOEXEC);
    text_release(&path);
    if (fd < 0)
        return 0;
    kept = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return kept < 0 ? 0 : kept;
}

void host_files_open(int files[HOST_FILES], const char *library_dir, const char *binary_dir)
{
    for (int i = 0; i < HOST_FILES; i++) {
        const char *dir = i == PROGRAM_SMI ? binary_dir : library_dir;

        files[i] = dir ? open_installed(dir, file_names[i]) : 0;
    }
}

/* clang-format off */
const struct node_def control_nodes[] = {
    { "control/config", 0644, show_config, store_config, 0, NODE_CONTROL, NULL },
    { "control/clock", 0644, show_clock, store_clock, 0, NODE_CONTROL, NULL },
    { "control/last_error", 0444, show_last_error, NULL, 0, 0, NULL },
    { "events", 0444, NULL, NULL, STREAM_EVENTS, NODE_STREAM, NULL },
    { "kmsg", 0444, NULL, NULL, STREAM_KMSG, NODE_STREAM, NULL },
    { "snapshot", 0444, NULL, NULL, 0, NODE_SNAPSHOT, NULL },
    { "usr/bin/nvidia-smi", 0755, NULL, NULL, PROGRAM_SMI, NODE_HOST_FILE, host_file_exists },
    { "usr/lib64/libnvidia-ml.so.%v", 0755, NULL, NULL, LIBRARY_ML, NODE_HOST_FILE, host_file_exists },
    { "usr/lib64/libnvidia-ml.so.1", S_IFLNK | 0777, show_soname, NULL, LIBRARY_ML, 0, host_file_exists },
    { "usr/lib64/libnvidia-ml.so", S_IFLNK | 0777, show_soname, NULL, LIBRARY_ML, 0, host_file_exists },
    { "usr/lib64/libcuda.so.%v", 0755, NULL, NULL, LIBRARY_CUDA, NODE_HOST_FILE, host_file_exists },
    { "usr/lib64/libcuda.so.1", S_IFLNK | 0777, show_soname, NULL, LIBRARY_CUDA, 0, host_file_exists },
    { "usr/lib64/libcuda.so", S_IFLNK | 0777, show_soname, NULL, LIBRARY_CUDA, 0, host_file_exists },
    { 0 },
};
/* clang-format on */
