/*
 * Files of a real mount, read: one generation from first byte to last, the same as the snapshot, and what was
 * written before. Writes: test_writes.c; streams: test_streams.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/reader.h"
#include "sim/text.h"
#include "tests/mounted.h"

enum { SAMPLE_BYTES = 16384 };

#define UTILIZATION "gpus/0/control/utilization_gpu_percent"

static struct reader *reader;

/* --- reading --------------------------------------------------------------------------------- */

static int64_t generation_now(void)
{
    return text_number(file_text("control/clock"), "generation");
}

static bool generation_moved(int64_t from)
{
    return WAIT_UNTIL(generation_now() > from);
}

/* The whole text that an open file shows, from offset 0. */
static int read_at_once(int fd, char *buf)
{
    ssize_t n = pread(fd, buf, SAMPLE_BYTES - 1, 0);

    buf[n < 0 ? 0 : n] = '\0';
    return (int)n;
}

static void test_chunks(void)
{
    static const size_t steps[] = { 1, 7, 100, 4095 };
    char whole[SAMPLE_BYTES], part[SAMPLE_BYTES];
    int a = file_open("gpus/0/sample", O_RDONLY), b = file_open("gpus/0/sample", O_RDONLY), n;
    bool same = true, moved = true;
    size_t used = 1;

    n = read_at_once(a, whole);
    ok(n > 1000, "a sample has %d bytes", n);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        moved = moved && generation_moved(text_number(whole, "generation"));
        for (size_t at = steps[i]; at < (size_t)n; at += steps[i]) {
            ssize_t got = pread(a, part, steps[i], (off_t)at);

            same = same && got > 0 && !memcmp(part, whole + at, (size_t)got);
        }
    }
    ok(moved, "the simulation goes on meanwhile");
    ok(same, "chunks, whatever their size, are of the generation that offset 0 showed");
    is_int(pread(a, part, 10, n), 0, "behind it is the end");
    is_int(pread(a, part, 10, (off_t)1 << 40), 0, "far behind it as well");
    n = read_at_once(a, part);
    ok(text_number(part, "generation") > text_number(whole, "generation"),
       "reading offset 0 again refreshes");

    /* Byte by byte, with generations passing by. */
    is_int(read(b, part, 1), 1, "one byte");
    generation_moved(generation_now());
    while (read(b, part + used, 1) == 1)
        if (used++ % 256 == 0)
            generation_moved(generation_now());
    part[used] = '\0';
    is_int(pread(b, whole, SAMPLE_BYTES, 1), (int64_t)used - 1, "as many bytes one by one");
    is_mem(whole, part + 1, used - 1, "and the same");
    ok(text_number(part, "generation") < generation_now() && part[used - 1] == '\n',
       "of one generation, up to the last newline");
    close(a);
    close(b);
}

/* --- sample and snapshot --------------------------------------------------------------------- */

static void test_snapshot(void)
{
    char sample[SAMPLE_BYTES];
    struct reader_node node;
    struct reader_gpu gpu;
    struct text shown = TEXT_INIT;
    int wrong = 0, lines = 0;

    is_int(file_put("control/clock", "pause"), 0, "the clock is paused");
    is_int(file_put("gpus/1/control/fault", "sensor temperature_memory_c"), 0, "a sensor breaks");
    file_read("gpus/1/sample", sample, sizeof(sample));
    is_int(reader_gpu(reader, 1, &gpu), 0, "the reader reads a GPU");
    is_int(reader_node(reader, &node), 0, "and the node");
    is_int(node.gpu_count, 2, "with its GPUs");
    is_int((int64_t)gpu.generation, text_number(sample, "generation"),
           "snapshot and sample are of one generation");
    is_int(node.now_ns, text_number(sample, "time_ns"), "and time");
    is_str(gpu.uuid, file_text("gpus/1/identity/uuid"), "the snapshot knows the UUID");
    text_addf(&shown, "generation %" PRIu64 "\ntime_ns %" PRId64 "\n", gpu.generation, node.now_ns);
    for (int id = 0; id < METRIC_COUNT; id++) {
        char path[128];
        int64_t value;
        int r = metric_read(&gpu.sample, (enum metric)id, &value), file;

        snprintf(path, sizeof(path), "gpus/1/metrics/%s", metric_infos[id].name);
        file = file_read(path, (char[64]){ 0 }, 64);
        wrong += (r < 0 ? r : 1) != (file < 0 ? file : 1);
        if (r == -ENODATA)
            continue;
        lines++;
        text_addf(&shown, "%s ", metric_infos[id].name);
        if (r == 0)
            unit_show(&shown, metric_infos[id].unit, value);
        else
            text_add(&shown, "NaN");
        text_add(&shown, "\n");
    }
    is_str(sample, text_str(&shown), "all %d metrics are the same in both", lines);
    is_int(wrong, 0, "what has no value or fails does so in the files, too");
    text_release(&shown);

    is_int(reader_gpu(reader, 2, &gpu), -ENODEV, "there is no third GPU");
    is_int(reader_gpu(reader, -1, &gpu), -ENODEV, "nor one below 0");
    is_int(reader_open(&(struct reader *){ NULL }, mounted.dir), -ENOENT, "nor a mount elsewhere");
    is_int(reader_text(reader, "gpus/0/identity/name", sample, sizeof(sample)), 21,
           "the reader reads texts");
    is_str(sample, "NVIDIA A100-SXM4-40GB", "without their newline");
    is_int(reader_text(reader, "gpus/0/sample", sample, 10), -E2BIG,
           "what does not fit is no text");
    is_int(reader_write(reader, UTILIZATION, "101"), -ERANGE, "the reader writes");
    is_int(file_put("gpus/1/control/fault", "recover"), 0, "the sensor is repaired");
    is_int(file_put("control/clock", "resume"), 0, "the clock goes on");
}

/* --- read your writes ------------------------------------------------------------------------ */

/* Another process: for every byte it gets it looks, and says what it saw in the file and the snapshot. */
static void watch(int from, int to)
{
    struct reader *own;
    struct reader_gpu gpu;
    char byte;

    if (reader_open(&own, mounted.root) < 0)
        _exit(1);
    while (read(from, &byte, 1) == 1) {
        int64_t seen[2] = { -1, -1 };

        if (reader_gpu(own, 0, &gpu) == 0 &&
            metric_read(&gpu.sample, METRIC_UTILIZATION_GPU, &seen[1]) == 0)
            seen[1] /= unit_parts(UNIT_PERCENT);
        seen[0] = file_number("gpus/0/metrics/utilization_gpu_percent");
        if (write(to, seen, sizeof(seen)) != sizeof(seen))
            break;
    }
    _exit(0);
}

static void test_read_your_writes(void)
{
    int ask[2], answer[2], stale_files = 0, stale_pages = 0, refused = 0;
    pid_t pid;

    if (pipe(ask) < 0 || pipe(answer) < 0)
        bail("pipe: %s", strerror(errno));
    pid = child_start();
    if (pid == 0) {
        close(ask[1]);
        close(answer[0]);
        watch(ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    for (int i = 0; i < 300; i++) {
        int64_t seen[2] = { -1, -1 };
        char text[16];

        snprintf(text, sizeof(text), "%d\n", i % 101);
        refused += file_put(UTILIZATION, text) < 0;
        if (write(ask[1], "", 1) != 1 || read(answer[0], seen, sizeof(seen)) != sizeof(seen))
            break;
        stale_files += seen[0] != i % 101;
        stale_pages += seen[1] != i % 101;
    }
    close(ask[1]);
    is_int(refused, 0, "300 writes");
    is_int(stale_files, 0, "another process sees each at once in the file");
    is_int(stale_pages, 0, "and in the snapshot");
    is_int(child_end(pid), 0, "until it ends");
    close(answer[0]);
    is_int(file_put(UTILIZATION, "auto"), 0, "auto gives it back");
    is_str(file_text(UTILIZATION), "auto", "and is shown");
}

/* --- a GPU that fails ------------------------------------------------------------------------ */

static void test_failing(void)
{
    int fd = file_open("gpus/1/metrics/temperature_gpu_c", O_RDONLY);
    struct reader_gpu gpu;
    int64_t value;
    char buf[16];

    ok(read(fd, buf, sizeof(buf)) > 0, "a temperature");
    is_int(file_put("gpus/1/control/fault", "sensor temperature_gpu_c"), 0, "its sensor fails");
    is_str(file_text("gpus/1/metrics/temperature_gpu_c"), "errno 5", "then it is EIO");
    is_int(pread(fd, buf, sizeof(buf), 0) < 0 ? errno : 0, EIO, "for who had it open, too");
    is_int(reader_gpu(reader, 1, &gpu), 0, "the snapshot");
    is_int(metric_read(&gpu.sample, METRIC_TEMPERATURE_GPU, &value), -EIO, "says the same");
    contains(file_text("gpus/1/sample"), "\ntemperature_gpu_c NaN\n", "the sample says NaN");
    is_int(file_put("gpus/1/control/fault", "fallen_off_bus"), 0, "it falls off the bus");
    is_int(pread(fd, buf, sizeof(buf), 0) < 0 ? errno : 0, ENODEV, "then it is ENODEV");
    is_int(file_put("gpus/1/control/power_limit_mw", "300000"), -ENODEV, "to write, too");
    like(file_text("gpus/1/control/last_error"), "fallen off the bus", "which last_error explains");
    is_int(reader_gpu(reader, 1, &gpu), 0, "the snapshot");
    ok(gpu.lost, "says that it is lost");
    is_int(file_put("gpus/1/control/fault", "recover"), 0, "it is recovered");
    ok(pread(fd, buf, sizeof(buf), 0) > 0, "and can be read again");
    close(fd);
}

int main(void)
{
    mounted_up("--gpus", "2", "--speed", "1000");
    is_int(reader_open(&reader, mounted.root), 0, "the reader opens the mount");
    test_chunks();
    is_int(file_put("control/clock", "speed 1"), 0, "from here in real time");
    test_snapshot();
    test_read_your_writes();
    test_failing();
    reader_close(reader);
    ok(mounted_down(), "the mount goes, and its daemon with it");
    return tap_done();
}
