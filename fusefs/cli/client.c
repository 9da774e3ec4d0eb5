/*
 * Client: a mount as the commands use it. See client.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/client.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, TEXT_MOST = 1 << 26 };

/* --- opening --------------------------------------------------------------------------------- */

const char *client_root(const struct client_options *options)
{
    const char *named = getenv("FAKEGPUFS_ROOT");

    if (options->mount)
        return options->mount;
    return named && *named ? named : DEFAULT_MOUNT;
}

bool client_is_lost(int err)
{
    return err == -ENOTCONN || err == -ECONNABORTED;
}

static int refuse_root(const struct client *c, int err, struct why *why)
{
    if (client_is_lost(err))
        return why_set(why, -err, "the daemon of %s is gone", c->root);
    if (err == -ENOENT || err == -ENOTDIR)
        return why_set(
            why, -err,
            "there is no mount on %s; 'fakegpufs mount' makes one, --mount names another", c->root);
    if (err == -EPROTO)
        return why_set(why, -err, "%s was mounted by another version of fakegpufs", c->root);
    return why_set(why, -err, "cannot read %s: %s", c->root, strerror(-err));
}

int client_open(struct client *c, const struct client_options *options, struct why *why)
{
    int r;

    *c = (struct client){ .root = client_root(options), .explain = options->explain };
    r = reader_open(&c->reader, c->root);
    return r < 0 && !c->explain ? refuse_root(c, r, why) : 0;
}

void client_close(struct client *c)
{
    reader_close(c->reader);
    c->reader = NULL;
}

int client_fail(int err, struct why *why)
{
    int lost = client_is_lost(err);

    command_fail(why);
    return lost ? EXIT_LOST : 1;
}

/* --- reading --------------------------------------------------------------------------------- */

static int read_path(const struct client *c, struct text *out, const char *path)
{
    int fd = c->reader ? reader_open_file(c->reader, path) : -ENOENT;
    size_t start = out->length;
    ssize_t n;
    char *buf;

    if (fd < 0)
        return fd;
    /* The first read has it rendered, the others go on in that text: a short one is the last. */
    buf = malloc(CHUNK);
    do {
        n = buf ? read(fd, buf, CHUNK) : -1;
        if (n > 0)
            text_addn(out, buf, (size_t)n);
    } while ((n == CHUNK && out->length - start <= TEXT_MOST) || (n < 0 && buf && errno == EINTR));
    n = !buf ? -ENOMEM : n < 0 ? -errno : n == CHUNK ? -E2BIG : 0;
    free(buf);
    close(fd);
    if (n < 0)
        text_cut(out, start);
    else if (out->length > start && out->data[out->length - 1] == '\n')
        text_cut(out, out->length - 1);
    return (int)n;
}

int client_read(const struct client *c, struct text *out, const char *fmt, ...)
{
    struct text path = TEXT_INIT;
    va_list ap;
    int r;

    va_start(ap, fmt);
    text_vaddf(&path, fmt, ap);
    va_end(ap);
    r = read_path(c, out, text_str(&path));
    text_release(&path);
    return r;
}

int64_t client_number(const struct client *c, int64_t otherwise, const char *fmt, ...)
{
    struct text path = TEXT_INIT, value = TEXT_INIT;
    va_list ap;

    va_start(ap, fmt);
    text_vaddf(&path, fmt, ap);
    va_end(ap);
    if (read_path(c, &value, text_str(&path)) < 0 || parse_i64(text_str(&value), &otherwise) < 0)
        errno = 0; /* it stays what it was */
    text_release(&path);
    text_release(&value);
    return otherwise;
}

int64_t client_line_number(const char *text, const char *name, int64_t otherwise)
{
    size_t n = strlen(name);

    for (const char *line = text; line; line = strchr(line, '\n'), line += line ? 1 : 0)
        if (!strncmp(line, name, n) && line[n] == ' ')
            return strtoll(line + n, NULL, 10);
    return otherwise;
}

/* --- writing --------------------------------------------------------------------------------- */

/* The file that has the sentence for a refusal of `path`: of its GPU, its workload, or the node. */
static void add_last_error(struct text *out, const char *path)
{
    static const struct {
        const char *area, *file;
    } nearest[] = { { "gpus/", "/control/last_error" }, { "workloads/", "/last_error" } };

    for (size_t i = 0; i < sizeof(nearest) / sizeof(nearest[0]); i++) {
        size_t n = strlen(nearest[i].area);
        const char *slash = strncmp(path, nearest[i].area, n) ? NULL : strchr(path + n, '/');

        if (slash && !strncmp(path, "gpus/by-", 8))
            slash = strchr(slash + 1, '/');
        if (slash) {
            text_addf(out, "%.*s%s", (int)(slash - path), path, nearest[i].file);
            return;
        }
    }
    text_add(out, "control/last_error");
}

static int refuse(const struct client *c, const char *path, int err, struct why *why)
{
    struct text file = TEXT_INIT, sentence = TEXT_INIT;
    int r;

    if (client_is_lost(err))
        return refuse_root(c, err, why);
    add_last_error(&file, path);
    r = client_read(c, &sentence, "%s", text_str(&file));
    if (r < 0 || !strcmp(text_str(&sentence), "none") || err == -EACCES || err == -ENOENT)
        why_set(why, -err, "%s/%s: %s", c->root, path, strerror(-err));
    else
        why_set(why, -err, "%s", text_str(&sentence));
    text_release(&file);
    text_release(&sentence);
    return err;
}

static void say_file(const struct client *c, const char *before, const char *path)
{
    struct text file = TEXT_INIT, quoted = TEXT_INIT;

    text_addf(&file, "%s/%s", c->root, path);
    shell_quote(&quoted, text_str(&file));
    printf("%s%s\n", before, text_str(&quoted));
    text_release(&file);
    text_release(&quoted);
}

/* A command of several lines must be one write, which echo does not do. */
static void say_put(const struct client *c, const char *path, const char *text)
{
    struct text before = TEXT_INIT;

    if (strchr(text, '\n')) {
        printf("cat <<'END' > ");
        say_file(c, "", path);
        printf("%s%sEND\n", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
        return;
    }
    text_add(&before, "echo ");
    shell_quote(&before, text);
    text_add(&before, " > ");
    say_file(c, text_str(&before), path);
    text_release(&before);
}

int client_put(const struct client *c, const char *path, const char *text, struct why *why)
{
    int r;

    if (c->explain) {
        say_put(c, path, text);
        return 0;
    }
    r = reader_write(c->reader, path, text);
    return r < 0 ? refuse(c, path, r, why) : 0;
}

static int change_directory(const struct client *c, const char *path, const char *command,
                            int (*change)(const char *path), struct why *why)
{
    struct text whole = TEXT_INIT;
    int r = 0;

    text_addf(&whole, "%s/%s", c->root, path);
    if (c->explain)
        say_file(c, command, path);
    else if (change(text_str(&whole)) < 0)
        r = -errno;
    text_release(&whole);
    return r == -EEXIST ? r : r < 0 ? refuse(c, path, r, why) : 0;
}

static int exists_already(const char *path, struct why *why)
{
    return why_set(why, EEXIST, "there is a workload '%s' already",
                   strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

int client_make_held(const struct client *c, const char *name, int *fd, struct why *why)
{
    struct text path = TEXT_INIT, whole = TEXT_INIT;
    int r = 0;

    *fd = -1;
    text_addf(&path, "workloads/.%s", name);
    text_addf(&whole, "%s/%s", c->root, text_str(&path));
    if (c->explain)
        say_file(c, "exec 9> ", text_str(&path));
    else if ((*fd = open(text_str(&whole), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644)) < 0)
        r = errno == EEXIST ? exists_already(name, why) : refuse(c, text_str(&path), -errno, why);
    text_release(&path);
    text_release(&whole);
    return r;
}

static int make_directory(const char *path)
{
    return mkdir(path, 0755);
}

int client_make(const struct client *c, const char *path, struct why *why)
{
    int r = change_directory(c, path, "mkdir ", make_directory, why);

    return r == -EEXIST ? exists_already(path, why) : r;
}

int client_remove(const struct client *c, const char *path, struct why *why)
{
    return change_directory(c, path, "rmdir ", rmdir, why);
}

/* --- GPUs ------------------------------------------------------------------------------------ */

/* NODE/INDEX. The name of a node has no '/', and does not begin with a '.'. */
static bool is_on_node(const char *s)
{
    const char *slash = strchr(s, '/');

    return slash && slash > s && *s != '.' && slash[1] &&
           strspn(slash + 1, "0123456789") == strlen(slash + 1);
}

/* NVML writes the domain with eight digits, the kernel with four, and people write none. */
static void add_bus_id(struct text *out, const char *gpu)
{
    const char *colon = strchr(gpu, ':');
    size_t domain = colon && strchr(colon + 1, ':') ? (size_t)(colon - gpu) : 0;

    text_add(out, "gpus/by-bus-id/");
    if (!domain)
        text_add(out, "0000:");
    for (const char *p = domain == 8 && !strncmp(gpu, "0000", 4) ? gpu + 4 : gpu; *p; p++)
        text_addn(out, (char[]){ (char)tolower((unsigned char)*p) }, 1);
}

static int no_such_gpu(const struct client *c, const char *gpu, struct why *why)
{
    struct reader_node node;

    if (reader_node(c->reader, &node) < 0)
        return why_set(why, ENODEV, "there is no GPU '%s' in %s", gpu, c->root);
    return why_set(why, ENODEV,
                   "there is no GPU '%s' in %s; it has %d: an index, UUID, bus id or NODE/INDEX",
                   gpu, c->root, node.gpu_count);
}

void gpu_path(struct text *out, const char *gpu)
{
    int64_t index;

    if (parse_i64(gpu, &index) == 0)
        text_addf(out, "gpus/%" PRId64, index);
    else if (is_on_node(gpu))
        text_addf(out, "gpus/by-node/%s", gpu);
    else if (strchr(gpu, ':'))
        add_bus_id(out, gpu);
    else
        text_addf(out, "gpus/by-uuid/%s", gpu);
}

int client_gpu_index(const struct client *c, const char *gpu, struct why *why)
{
    struct text path = TEXT_INIT, shown = TEXT_INIT;
    bool other = !*gpu || (strchr(gpu, '/') && !is_on_node(gpu)); /* a path of something else */
    int64_t index = -1;
    int r;

    gpu_path(&path, gpu);
    r = other ? -ENOENT : client_read(c, &shown, "%s/identity/index", text_str(&path));
    if (r == 0 && parse_i64(text_str(&shown), &index) < 0)
        r = -ENOENT;
    text_release(&path);
    text_release(&shown);
    if (client_is_lost(r))
        return refuse_root(c, r, why);
    return r < 0 ? no_such_gpu(c, gpu, why) : (int)index;
}

int client_gpu_path(const struct client *c, struct text *out, const char *gpu, struct why *why)
{
    int r = c->reader ? client_gpu_index(c, gpu, why) : 0;

    gpu_path(out, gpu);
    return r < 0 ? r : 0;
}

/* --- explaining ------------------------------------------------------------------------------ */

void shell_quote(struct text *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";

    if (*word && strspn(word, plain) == strlen(word)) {
        text_add(out, word);
        return;
    }
    text_add(out, "'");
    for (; *word; word++)
        text_add(out, *word == '\'' ? "'\\''" : (char[]){ *word, '\0' });
    text_add(out, "'");
}

void client_say(const struct client *c, const char *fmt, ...)
{
    va_list ap;

    if (!c->explain)
        return;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}
