/*
 * fakegpufs cdi: a mount as a specification of the container device interface, for engines that know CDI.
 *
 * A container gets the device nodes of its GPUs, nvidia-smi, the library where loaders look for it, and the mount,
 * which both read. There is no hook: no program of NVIDIA's has to be there. Which GPUs the container sees, its device
 * nodes say: NVIDIA_VISIBLE_DEVICES is `void`, so that several devices can be asked for at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fusefs/cli/client.h"
#include "fusefs/majors.h"

/*
 * Where the library looks by itself: engines do not give the environment of CDI to everything that they start in a
 * container.
 */
#define PLACE DEFAULT_MOUNT

struct options {
    struct client_options client;
    const char *kind, *share;
};

/* What is written, and where everything of it is. */
struct spec {
    const struct client *client;
    char root[PATH_MAX]; /* the mount */
    char
        share[PATH_MAX]; /* what containers get as PLACE: the mount, or a directory that it is in */
    bool shared;         /* the latter */
    bool nodes_are_files; /* no runtime takes these for devices: they are mounted */
    struct text out;
    struct text all; /* the nodes of all GPUs */
};

/* --- files that outlive a driver -------------------------------------------------------------- */

static const char *const shared_files[] = { "usr/bin/nvidia-smi", "usr/lib64/libnvidia-ml.so.1" };

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

static int copy(int from, int to)
{
    char block[65536];
    ssize_t n, written;

    while ((n = read(from, block, sizeof(block))) > 0)
        for (ssize_t done = 0; done < n; done += written) {
            written = write(to, block + done, (size_t)(n - done));
            if (written < 0)
                return -errno;
        }
    return n < 0 ? -errno : 0;
}

/* Whole or not at all: containers may have the one that was there. */
static int copy_shared_file(struct spec *s, const char *path, struct why *why)
{
    char to[PATH_MAX + 64], next[PATH_MAX + 96];
    int from = reader_open_file(s->client->reader, path), fd = -1, r = from < 0 ? from : 0;

    snprintf(to, sizeof(to), "%s/files/%s", s->share, name_of(path));
    snprintf(next, sizeof(next), "%s.new", to);
    if (r == 0) {
        fd = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0755);
        r = fd < 0 ? -errno : copy(from, fd);
    }
    if (r == 0 && fchmod(fd, 0755) < 0)
        r = -errno;
    if (fd >= 0 && close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(next, to) < 0)
        r = -errno;
    if (from >= 0)
        close(from);
    return r < 0 ? why_set(why, -r, "cannot copy %s/%s to %s: %s", s->root, path, to, strerror(-r))
                 : 0;
}

static int copy_shared_files(struct spec *s, struct why *why)
{
    char directory[PATH_MAX + 8];
    int r = 0;

    snprintf(directory, sizeof(directory), "%s/files", s->share);
    if (mkdir(directory, 0755) < 0 && errno != EEXIST)
        return why_set(why, errno, "cannot make %s: %s", directory, strerror(errno));
    for (size_t i = 0; r == 0 && i < sizeof(shared_files) / sizeof(*shared_files); i++)
        r = copy_shared_file(s, shared_files[i], why);
    return r;
}

/* --- what a container gets -------------------------------------------------------------------- */

static void add_mount(struct text *out, const char *from, const char *to, const char *options)
{
    text_addf(out, "{\"hostPath\": \"%s\", \"containerPath\": \"%s\", \"options\": [%s]}", from, to,
              options);
}

static void add_file(struct spec *s, const char *path, const char *to)
{
    char from[2 * PATH_MAX];

    if (s->shared)
        snprintf(from, sizeof(from), "%s/files/%s", s->share, name_of(path));
    else
        snprintf(from, sizeof(from), "%s/%s", s->root, path);
    text_add(&s->out, ",\n    ");
    add_mount(&s->out, from, to, "\"bind\", \"ro\", \"exec\", \"nosuid\", \"nodev\"");
}

/* Appends one to a list of nodes. */
static void add_node(const struct spec *s, struct text *list, const char *name)
{
    char from[PATH_MAX + 64], to[64];

    snprintf(from, sizeof(from), "%s/dev/%s", s->root, name);
    snprintf(to, sizeof(to), "/dev/%s", name);
    text_add(list, list->length ? ",\n      " : "");
    if (s->nodes_are_files)
        add_mount(list, from, to, "\"bind\", \"rw\", \"nosuid\"");
    else
        text_addf(list, "{\"path\": \"%s\", \"hostPath\": \"%s\"}", to, from);
}

static void add_gpu_node(const struct spec *s, struct text *list, int minor)
{
    char name[32];

    snprintf(name, sizeof(name), "nvidia%d", minor);
    add_node(s, list, name);
}

static void add_capability_nodes(const struct spec *s, struct text *list, int minor, int gi, int ci)
{
    char name[48];

    snprintf(name, sizeof(name), "nvidia-caps/nvidia-cap%d", caps_instance_minor(minor, gi, -1));
    add_node(s, list, name);
    snprintf(name, sizeof(name), "nvidia-caps/nvidia-cap%d", caps_instance_minor(minor, gi, ci));
    add_node(s, list, name);
}

static const char *nodes_key(const struct spec *s)
{
    return s->nodes_are_files ? "mounts" : "deviceNodes";
}

static void add_common(struct spec *s)
{
    static const char *const nodes[] = { "nvidiactl", "nvidia-modeset", "nvidia-uvm",
                                         "nvidia-uvm-tools" };
    struct text list = TEXT_INIT;
    struct utsname machine;
    char library[192];

    uname(&machine);
    snprintf(library, sizeof(library), "/usr/lib/%s-linux-gnu/libnvidia-ml.so.1", machine.machine);
    for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
        add_node(s, &list, nodes[i]);
    text_addf(&s->out,
              " \"containerEdits\": {\n"
              "   \"env\": [\"NVIDIA_VISIBLE_DEVICES=void\", \"FAKEGPUFS_ROOT=%s%s\"],\n",
              PLACE, s->root + strlen(s->share));
    if (!s->nodes_are_files)
        text_addf(&s->out, "   \"deviceNodes\": [\n      %s],\n", text_str(&list));
    text_add(&s->out, "   \"mounts\": [\n    ");
    add_mount(&s->out, s->share, PLACE, "\"rbind\", \"rslave\", \"nosuid\", \"nodev\"");
    if (s->nodes_are_files)
        text_addf(&s->out, ",\n      %s", text_str(&list));
    add_file(s, shared_files[0], "/usr/bin/nvidia-smi");
    add_file(s, shared_files[1], library);
    add_file(s, shared_files[1], "/usr/lib64/libnvidia-ml.so.1");
    text_add(&s->out, "]},\n");
    text_release(&list);
}

/* --- devices ---------------------------------------------------------------------------------- */

static void add_device(struct spec *s, const char *name, const char *nodes)
{
    text_addf(&s->out, "  {\"name\": \"%s\", \"containerEdits\": {\"%s\": [\n      %s]}},\n", name,
              nodes_key(s), nodes);
}

/* A line of mig/instances: a MIG device where it has a compute instance. */
static bool read_mig(const char *line, int *gi, int *ci, char uuid[64])
{
    return sscanf(line, "%d %d %*s %*s %*s %*s %*s %63s", gi, ci, uuid) == 3;
}

/* The MIG devices of a GPU in MIG mode: how many there are. */
static int add_mig_devices(struct spec *s, int index, int minor)
{
    struct text table = TEXT_INIT, nodes = TEXT_INIT;
    char *line, *rest, uuid[64], name[32];
    int gi, ci, count = 0;

    if (client_read(s->client, &table, "gpus/%d/mig/instances", index) == 0 && table.data)
        for (line = strtok_r(table.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            if (!read_mig(line, &gi, &ci, uuid))
                continue;
            text_cut(&nodes, 0);
            add_gpu_node(s, &nodes, minor);
            add_capability_nodes(s, &nodes, minor, gi, ci);
            snprintf(name, sizeof(name), "%d:%d", index, count++);
            add_device(s, name, text_str(&nodes));
            add_device(s, uuid, text_str(&nodes));
            add_capability_nodes(s, &s->all, minor, gi, ci);
        }
    text_release(&nodes);
    text_release(&table);
    return count;
}

static int add_gpu(struct spec *s, int index, struct why *why)
{
    int minor = (int)client_number(s->client, -1, "gpus/%d/identity/minor_number", index);
    struct text nodes = TEXT_INIT;
    struct reader_gpu gpu;
    char name[16];
    int r = reader_gpu(s->client->reader, index, &gpu);

    if (r < 0)
        return why_set(why, -r, "cannot read GPU %d of %s: %s", index, s->root, strerror(-r));
    if (gpu.lost || minor < 0)
        return 0; /* it has no node */
    add_gpu_node(s, &s->all, minor);
    if (add_mig_devices(s, index, minor) > 0)
        return 0; /* as of a real one, it cannot be had as a whole */
    add_gpu_node(s, &nodes, minor);
    snprintf(name, sizeof(name), "%d", index);
    add_device(s, name, text_str(&nodes));
    add_device(s, gpu.uuid, text_str(&nodes));
    text_release(&nodes);
    return 0;
}

static int add_gpus(struct spec *s, struct why *why)
{
    struct reader_node node;
    int r = reader_node(s->client->reader, &node);

    if (r < 0)
        return why_set(why, -r, "cannot read %s: %s", s->root, strerror(-r));
    text_add(&s->out, " \"devices\": [\n");
    for (int i = 0; r == 0 && i < node.gpu_count; i++)
        r = add_gpu(s, i, why);
    if (r == 0 && !s->all.length)
        return why_set(why, ENODEV, "%s has no GPU that is on its bus", s->root);
    text_addf(&s->out, "  {\"name\": \"all\", \"containerEdits\": {\"%s\": [\n      %s]}}]}\n",
              nodes_key(s), text_str(&s->all));
    return r;
}

/* --- the command ------------------------------------------------------------------------------ */

/* An engine wants whole paths; and they are put into JSON as they are. */
static int find_path(char path[PATH_MAX], const char *said, struct why *why)
{
    if (!realpath(said, path))
        return why_set(why, errno, "cannot find %s: %s", said, strerror(errno));
    for (const char *p = path; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
            return why_set(why, EINVAL,
                           "%s cannot be shared: the name has a character that is "
                           "not allowed: a quote, a backslash or a control character",
                           path);
    return 0;
}

static int find_share(struct spec *s, const char *share, struct why *why)
{
    size_t length;
    int r = find_path(s->share, share, why);

    if (r < 0)
        return r;
    s->shared = true;
    length = strlen(s->share);
    if (!strncmp(s->root, s->share, length) && s->root[length] == '/')
        return copy_shared_files(s, why);
    return why_set(why, EINVAL, "--share: %s is not in %s", s->root, s->share);
}

static int write_spec(const struct client *c, const struct options *o, struct why *why)
{
    struct spec s = { .client = c };
    char node[PATH_MAX + 32];
    struct stat st;
    int r = find_path(s.root, c->root, why);

    memcpy(s.share, s.root, sizeof(s.share));
    if (r == 0 && o->share)
        r = find_share(&s, o->share, why);
    if (r == 0) {
        snprintf(node, sizeof(node), "%s/dev/nvidiactl", s.root);
        s.nodes_are_files = stat(node, &st) == 0 && S_ISREG(st.st_mode);
        text_addf(&s.out, "{\"cdiVersion\": \"0.5.0\", \"kind\": \"%s\",\n", o->kind);
        add_common(&s);
        r = add_gpus(&s, why);
    }
    if (r == 0 && (s.out.failed || s.all.failed))
        r = why_set(why, ENOMEM, "out of memory");
    if (r == 0 && (fputs(text_str(&s.out), stdout) == EOF || fflush(stdout) == EOF))
        r = why_set(why, errno, "cannot write: %s", strerror(errno));
    text_release(&s.out);
    text_release(&s.all);
    return r;
}

/* VENDOR/CLASS, as CDI allows them. */
static bool is_kind(const char *kind)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t vendor = strspn(kind, allowed);

    return vendor && kind[vendor] == '/' && kind[vendor + 1] &&
           !kind[vendor + 1 + strspn(kind + vendor + 1, allowed)];
}

static int run(const struct command_call *call)
{
    const struct options *o = call->options;
    struct client c;
    struct why why = { 0 };
    int r;

    if (!is_kind(o->kind))
        return command_usage(call,
                             "--kind: '%s' is not VENDOR/CLASS, of letters, digits, '-', '_' "
                             "and '.'",
                             o->kind);
    r = client_open(&c, &o->client, &why);
    if (r == 0)
        r = write_spec(&c, o, &why);
    client_close(&c);
    return r < 0 ? client_fail(r, &why) : 0;
}

static const struct options defaults = { .kind = "nvidia.com/gpu" };

static const struct command_option options[] = {
    OPTION("share", 's', "DIR", OPTION_TEXT, struct options, share,
           "containers get DIR, which the mount is in", .complete = COMPLETE_DIRECTORY),
    OPTION("kind", 0, "NAME", OPTION_TEXT, struct options, kind,
           "VENDOR/CLASS of the devices; default: nvidia.com/gpu"),
    CLIENT_MOUNT(struct options, client),
    { 0 },
};

static const struct command_exit exits[] = {
    { "2", "the daemon is gone" },
    { 0 },
};

const struct command command_cdi = {
    .name = "cdi",
    .summary = "write a CDI specification for container engines",
    .text =
        "Writes a specification of the container device interface (CDI) to standard output. Where "
        "an engine finds it, containers can ask for nvidia.com/gpu=0, for a UUID, for a MIG device "
        "(0:1) or for all: they get the device nodes, nvidia-smi, the library and the mount.",
    .more =
        "A container sees the GPUs whose device nodes it has. A GPU that is lost is left out, and so is, "
        "as a whole, one with MIG devices. Device nodes that are files are mounted.\n"
        "\n"
        "With --share a container sees the next driver, too, when the mount is replaced: it gets DIR, "
        "and nvidia-smi and the library are copied to DIR/files, where they live on. Without, it has "
        "this mount and files of it, and ends with it.",
    .options = options,
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .exits = exits,
    .examples = { "fakegpufs cdi >/var/run/cdi/fakegpufs.json",
                  "fakegpufs cdi --mount /run/fakegpufs/driver --share /run/fakegpufs" },
    .run = run,
};
