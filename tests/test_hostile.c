/*
 * Hostile: whoever writes rubbish changes nothing and stops nobody; GPUs come and go under open files;
 * and very many read at once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dirent.h>
#include <sys/mman.h>

#include "fusefs/reader.h"
#include "sim/rng.h"
#include "tests/mounted.h"

enum { READERS = 32, READ_MS = 3000, BLOBS = 40 };

/* --- rubbish --------------------------------------------------------------------------------- */

/* What a writable file shows, and must show afterwards if it refused. A clock goes on all by itself. */
static void look_at(const char *path, char *text, size_t size)
{
    if (file_read(path, text, size) < 0)
        snprintf(text, size, "errno");
    if (strstr(text, "\nnow "))
        *strstr(text, "\nnow ") = '\0';
}

/* The bytes are no command; if one is accepted all the same, that is no half of it. */
static bool refuses(const char *path, const char *bytes, size_t size)
{
    static char before[65536], after[65536];
    int r;

    look_at(path, before, sizeof(before));
    r = file_write(path, bytes, size);
    look_at(path, after, sizeof(after));
    if (r == 0)
        return true;
    return !strcmp(before, after) &&
           (r == -EINVAL || r == -ERANGE || r == -E2BIG || r == -ENODEV || r == -ENOSPC ||
            r == -ENOENT || r == -EBUSY || r == -ENODATA || r == -EOPNOTSUPP);
}

static size_t repeated(char *buf, size_t size, const char *piece)
{
    size_t n = strlen(piece), used = 0;

    for (; used + n < size; used += n)
        memcpy(buf + used, piece, n);
    return used;
}

static const char *const pieces[] = {
    "[",
    "{a: ",
    "- ",
    "&a [*a, ",
    "\"",
    "\\",
    "%n%s",
    "../",
    "9",
    "-",
    "80:",
    "1e308",
    "a",
    "\t",
    " ",
    "0x7fffffffffffffff",
    "? ",
    "!!binary",
    "workloads: [",
    "|",
    "gpus: [",
    "'",
    "#",
    "memory: ",
    "step 1s ",
    "xid 79\n",
    "\xff\xfe",
    "\xc3\xa9",
    "80\r\n",
    "~\n",
    "inf",
    "nan",
};

/* Every file that can be written below a directory, into `paths`. */
static int writable_files(const char *directory, char (*paths)[256], int most)
{
    DIR *dir = opendir(file_path("%s", directory));
    struct dirent *e;
    struct stat st;
    int n = 0;

    while (dir && (e = readdir(dir)) && n < most) {
        snprintf(paths[n], sizeof(paths[n]), "%s/%.100s", directory, e->d_name);
        /* Whoever lets go of attach ends the workload, whatever he wrote. */
        n += stat(file_path("%s", paths[n]), &st) == 0 && S_ISREG(st.st_mode) &&
             st.st_mode & 0200 && strcmp(e->d_name, "attach");
    }
    if (dir)
        closedir(dir);
    return n;
}

static void test_rubbish(void)
{
    static char paths[64][256], blob[1 << 18];
    struct rng rng = rng_seeded(1, "hostile");
    pid_t worker = worker_now();
    int n = writable_files("control", paths, 64), half = 0;

    n += writable_files("gpus/0/control", paths + n, 64 - n);
    n += writable_files("workloads/job", paths + n, 64 - n);
    ok(n > 20, "%d files can be written", n);
    for (int i = 0; i < n; i++) {
        int before = half;

        for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
            half += !refuses(paths[i], pieces[p], strlen(pieces[p]));
            half += !refuses(paths[i], blob, repeated(blob, 4096, pieces[p]));
            if (p % 4 == (size_t)i % 4)
                half += !refuses(paths[i], blob, repeated(blob, sizeof(blob), pieces[p]));
        }
        for (int b = 0; b < BLOBS; b++) {
            size_t size = 1 + rng_next(&rng) % 512;

            for (size_t k = 0; k < size; k++)
                blob[k] = (char)rng_next(&rng);
            half += !refuses(paths[i], blob, size);
        }
        half += !refuses(paths[i], "8\0000", 3);
        half += !refuses(paths[i], "\0", 1);
        if (half > before)
            diag("%s takes what it refuses: %s", paths[i], file_text("control/last_error"));
    }
    is_int(half, 0, "what they refuse changes nothing, and is refused with a reason");
    is_int(worker_now(), worker, "no worker died of it");
}

static const char *const configs[] = {
    "gpus: {count: 3}\nprofile: nothing\n",
    "gpus: {count: 3}\nworkloads: [{name: a, devices: [9]}]\n",
    "gpus: {count: 3}\ngpus: {count: 4}\n",
    "gpus: {count: 3}\nfaults: [{at: 1s, gpu: 7, fault: xid 79}]\n",
    "gpus: {count: 3}\n...\ngpus: {count: 4}\n",
    "gpus: {count: 3}\n\tprofile: idle\n",
    "gpus: {count: 3, model: A100-SXM4-40GB, memory: 1EiB}\n",
    "gpus: {count: 3}\nspeed: .nan\n",
    "a: &a [*a, *a]\n",
    "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n",
};

static void test_wrong_configs(void)
{
    char before[8192], after[8192];
    int accepted = 0, changed = 0;

    look_at("control/config", before, sizeof(before));
    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        accepted += file_write("control/config", configs[i], strlen(configs[i]) + !*configs[i]) ==
                    0;
        look_at("control/config", after, sizeof(after));
        changed += strcmp(before, after) || access(file_path("gpus/2"), F_OK) == 0;
        if (strcmp(before, after))
            diag("%s", configs[i]);
    }
    is_int(accepted, 0, "configurations with one mistake are refused");
    is_int(changed, 0, "and nothing of them is taken");
}

/* --- GPUs that come and go ------------------------------------------------------------------- */

enum { OPENED = 8 };

struct opened {
    int uuid, sample, metric;
    char was[64]; /* the UUID */
};

static void open_gpus(struct opened *o, int count)
{
    for (int i = 0; i < count; i++) {
        o[i].uuid = open(file_path("gpus/%d/identity/uuid", i), O_RDONLY | O_CLOEXEC);
        o[i].sample = open(file_path("gpus/%d/sample", i), O_RDONLY | O_CLOEXEC);
        o[i].metric = open(file_path("gpus/%d/metrics/power_usage_mw", i), O_RDONLY | O_CLOEXEC);
        o[i].was[pread(o[i].uuid, o[i].was, sizeof(o[i].was) - 1, 0)] = '\0';
    }
}

static void close_gpus(struct opened *o, int count)
{
    for (int i = 0; i < count; i++) {
        close(o[i].uuid);
        close(o[i].sample);
        close(o[i].metric);
    }
}

static bool is_there(const char *uuid)
{
    char name[64];

    snprintf(name, sizeof(name), "%s", uuid);
    name[strcspn(name, "\n")] = '\0';
    return access(file_path("gpus/by-uuid/%s/sample", name), F_OK) == 0;
}

/* What was opened shows its own GPU or an error; how many still show it. -1: another's data. */
static int still_same(const struct opened *o, int count)
{
    char buf[64] = "";
    int same = 0;

    for (int i = 0; i < count; i++) {
        ssize_t n = pread(o[i].uuid, buf, sizeof(buf) - 1, 0);
        int err = errno, other_err;

        buf[n < 0 ? 0 : n] = '\0';
        if (n < 0) {
            other_err = pread(o[i].sample, buf, sizeof(buf), 0) < 0 ? errno : 0;
            if ((err != ENODEV && err != ENOENT) || other_err != err)
                return -1;
            continue;
        }
        if (strcmp(buf, o[i].was) || !is_there(o[i].was) ||
            pread(o[i].metric, buf, sizeof(buf), 0) <= 0)
            return -1;
        same++;
    }
    return same;
}

/* Files, links and snapshot agree on who is where, right after the write. */
static bool agree(struct reader *reader, int count)
{
    struct reader_node node;
    struct reader_gpu gpu;
    bool same = reader_node(reader, &node) == 0 && node.gpu_count == count;

    for (int i = 0; same && i < count; i++) {
        char uuid[64], link[64];
        ssize_t n;

        same = reader_gpu(reader, i, &gpu) == 0;
        snprintf(uuid, sizeof(uuid), "%s",
                 file_text(file_path("gpus/%d/identity/uuid", i) + strlen(mounted.root) + 1));
        n = readlink(file_path("gpus/by-uuid/%s", uuid), link, sizeof(link) - 1);
        link[n < 0 ? 0 : n] = '\0';
        same = same && !strcmp(gpu.uuid, uuid) && n > 3 && atoi(link + 3) == i;
        if (!same)
            diag("GPU %d: '%s' in its file, '%s' in the snapshot, link '%s'", i, uuid, gpu.uuid,
                 link);
    }
    return same && reader_gpu(reader, count, &gpu) == -ENODEV &&
           access(file_path("gpus/%d", count), F_OK) < 0;
}

static void configure(const char *yaml)
{
    is_int(file_put("control/config", yaml), 0, "%s", yaml);
}

static void test_coming_and_going(void)
{
    struct opened first[OPENED], second[OPENED];
    struct reader *reader;

    is_int(reader_open(&reader, mounted.root), 0, "a reader");
    configure("gpus: {count: 4, model: T4}");
    ok(agree(reader, 4), "four GPUs, everywhere");
    open_gpus(first, 4);
    is_int(still_same(first, 4), 4, "their files are opened");
    configure("gpus: {count: 2, model: T4}");
    ok(agree(reader, 2), "two GPUs, everywhere");
    is_int(still_same(first, 4), 2, "two are as they were, two are gone");
    configure("gpus: {count: 6, model: T4}");
    ok(agree(reader, 6), "six GPUs, everywhere");
    is_int(still_same(first, 4), 2, "open files of those that went show no other's data");
    open_gpus(second, 6);
    configure("gpus: {count: 6, model: L4}");
    ok(agree(reader, 6), "six of another model, everywhere");
    ok(still_same(second, 6) >= 0, "open files show no other's data");
    is_str(file_text("gpus/0/identity/name"), "NVIDIA L4", "and GPU 0 is the new one at once");
    configure("gpus: [{count: 2, model: T4}, {count: 4, model: L4}]");
    ok(agree(reader, 6), "others in front of them, everywhere");
    ok(still_same(second, 6) >= 0, "open files show no other's data");
    is_str(file_text("gpus/0/identity/name"), "Tesla T4", "GPU 0 is one of those in front");
    configure("gpus: {count: 0}");
    ok(agree(reader, 0), "no GPU, everywhere");
    is_int(still_same(first, 4) + still_same(second, 6), 0, "all are gone");
    configure("gpus: {count: 2}");
    ok(agree(reader, 2), "two GPUs, everywhere");
    is_int(still_same(first, 4) + still_same(second, 6), 0, "who is gone stays gone");
    close_gpus(first, 4);
    close_gpus(second, 6);
    reader_close(reader);
}

/* --- very many readers ----------------------------------------------------------------------- */

static struct board {
    volatile bool stop;
    volatile int64_t reads[READERS], errors[READERS], torn[READERS];
} * board;

struct reading {
    int64_t generation, time_ns, total, used, free, reserved, energy_mj;
};

static bool parts_fit(const struct reading *now, struct reading *before)
{
    bool fit = now->used + now->free + now->reserved == now->total &&
               now->generation >= before->generation && now->time_ns >= before->time_ns &&
               now->energy_mj >= before->energy_mj &&
               (now->generation > before->generation || now->time_ns == before->time_ns);

    *before = *now;
    return fit;
}

static int read_pages(struct reader *reader, int gpu, struct reading *r)
{
    static const enum metric wanted[] = { METRIC_MEMORY_TOTAL, METRIC_MEMORY_USED,
                                          METRIC_MEMORY_FREE, METRIC_MEMORY_RESERVED,
                                          METRIC_ENERGY_TOTAL };
    int64_t *into[] = { &r->total, &r->used, &r->free, &r->reserved, &r->energy_mj };
    struct reader_gpu page;
    int err = reader_gpu(reader, gpu, &page);

    for (int i = 0; err == 0 && i < 5; i++)
        err = metric_read(&page.sample, wanted[i], into[i]);
    r->generation = (int64_t)page.generation;
    r->time_ns = 0; /* the node's page has it, which may be of another generation */
    return err;
}

static int read_sample(int gpu, struct reading *r)
{
    char text[16384];
    int n = file_read(gpu ? "gpus/1/sample" : "gpus/0/sample", text, sizeof(text));

    if (n < 0)
        return n;
    *r = (struct reading){
        .generation = text_number(text, "generation"),
        .time_ns = text_number(text, "time_ns"),
        .total = text_number(text, "memory_total_bytes"),
        .used = text_number(text, "memory_used_bytes"),
        .free = text_number(text, "memory_free_bytes"),
        .reserved = text_number(text, "memory_reserved_bytes"),
        .energy_mj = text_number(text, "energy_total_mj"),
    };
    return 0;
}

static void read_on(int i)
{
    struct reading before = { 0 }, now = { 0 };
    struct reader *reader;

    if (reader_open(&reader, mounted.root) < 0)
        _exit(1);
    while (!board->stop) {
        int r = i % 2 ? read_pages(reader, i / 2 % 2, &now) : read_sample(i / 2 % 2, &now);

        board->reads[i]++;
        board->errors[i] += r < 0;
        board->torn[i] += r == 0 && !parts_fit(&now, &before);
    }
    _exit(0);
}

static void test_many_readers(void)
{
    int64_t reads[2] = { 0 }, errors = 0, torn = 0, end, writes = 0;
    pid_t pids[READERS];
    int idle = 0, refused = 0, ended = 0;

    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        bail("out of memory");
    for (int i = 0; i < READERS; i++) {
        pids[i] = child_start();
        if (pids[i] == 0)
            read_on(i);
    }
    for (end = now_ms() + READ_MS; now_ms() < end; writes++) {
        char text[32];

        snprintf(text, sizeof(text), "%" PRId64 "MiB", writes * 37 % 40000);
        refused += file_put(writes % 2 ? "gpus/0/control/memory_used_bytes"
                                       : "gpus/1/control/memory_used_bytes",
                            text) < 0;
    }
    board->stop = true;
    for (int i = 0; i < READERS; i++) {
        ended += child_end(pids[i]) == 0;
        reads[i % 2] += board->reads[i];
        idle += !board->reads[i];
        errors += board->errors[i];
        torn += board->torn[i];
    }
    is_int(ended, READERS, "%d readers, %" PRId64 " samples and %" PRId64 " snapshots", READERS,
           reads[0], reads[1]);
    is_int(refused, 0, "%" PRId64 " writes meanwhile", writes);
    is_int(idle, 0, "none of them went without");
    is_int(errors, 0, "no error");
    is_int(torn, 0, "nothing was torn, and nothing went back");
}

int main(void)
{
    pid_t worker;

    mounted_up("--gpus", "2", "--speed", "100");
    worker = worker_now();
    is_int(mkdir(file_path("workloads/job"), 0755), 0, "a workload");
    test_many_readers();
    test_wrong_configs();
    test_rubbish();
    is_int(rmdir(file_path("workloads/job")), 0, "the workload is still there, and goes");
    test_coming_and_going();
    is_int(worker_now(), worker, "one worker served all of this");
    ok(mounted_down(), "the mount goes, and its daemon with it");
    return tap_done();
}
