/*
 * Recordings: what is written is read again, logs of nvidia-smi are read in all their forms, what is wrong is
 * said with its line and column; and a recording that is replayed and recorded again is the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

#include "fusefs/cli/replay.h"
#include "tests/mounted.h"

static int read_text(struct recording *r, const char *text, const struct recording_options *options,
                     struct why *why)
{
    static const struct recording_options none = { 0 };
    FILE *file = *text ? fmemopen((char *)(uintptr_t)text, strlen(text), "r")
                       : fopen("/dev/null", "r");
    int result = recording_read(r, file, "f", options ? options : &none, why);

    fclose(file);
    return result;
}

/* The value of a metric in line `i`, or INT64_MIN where the line does not say it. */
static int64_t value_in(const struct recording *r, size_t i, int metric, int state)
{
    for (size_t k = r->lines[i].first; k < r->lines[i].first + r->lines[i].count; k++)
        if (r->values[k].metric == metric)
            return r->values[k].state == state ? r->values[k].value : INT64_MIN;
    return INT64_MIN;
}

/* --- reading --------------------------------------------------------------------------------- */

static void check_own(void)
{
    static const char csv[] =
        "generation,time_s,gpu,temperature_gpu_c,memory_used_bytes,energy_total_mj\n"
        "5,10.000,0,50,1024,7\n"
        "5,10.000,1,NaN,,7\n"
        "7,10.100,0,50,2048,8\n";
    static const char json[] =
        "{\"generation\":5,\"time_s\":10.000,\"gpu\":0,\"temperature_gpu_c\":50,\"memory_used_bytes\":1024}\n"
        "{ \"time_s\" : 10, \"gpu\" : 1 , \"temperature_gpu_c\" : null }\n\n"
        "{\"time_s\":10.1,\"gpu\":0,\"temperature_gpu_c\":50,\"memory_used_bytes\":2048}\n";
    const char *const texts[] = { csv, json };

    for (int i = 0; i < 2; i++) {
        const char *form = i ? "JSON" : "CSV";
        struct recording r;
        struct why why = { 0 };

        if (!is_int(read_text(&r, texts[i], NULL, &why), 0, "%s is read: %s", form, why_text(&why)))
            continue;
        is_int((int64_t)r.line_count, 3, "%s: lines", form);
        is_int(r.gpu_count, 2, "%s: GPUs", form);
        is_int(r.lines[2].time_ns, 100 * NS_PER_MS, "%s: time counts from the first line", form);
        is_int(value_in(&r, 0, METRIC_TEMPERATURE_GPU, RECORDED_VALUE), 50000, "%s: a value", form);
        is_int(value_in(&r, 1, METRIC_TEMPERATURE_GPU, RECORDED_FAILED), 0, "%s: a failed one",
               form);
        is_int(value_in(&r, 2, METRIC_TEMPERATURE_GPU, RECORDED_VALUE), INT64_MIN,
               "%s: what did not change is left out", form);
        is_int(value_in(&r, 2, METRIC_MEMORY_USED, RECORDED_VALUE), 2048, "%s: what did is not",
               form);
        recording_release(&r);
    }
}

static const char heading[] =
    "timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu, "
    "clocks.current.sm [MHz], temperature.memory, fan.speed [%], remapped_rows.pending\n";
static const char with_units[] =
    "2024/01/31 23:59:59.500, 0, NVIDIA H100, 45 %, 12345 MiB, 275.32 W, 52, 1410 MHz, [N/A], [N/A], No\n"
    "2024/01/31 23:59:59.503, 1, NVIDIA H100, 0 %, 0 MiB, 52.10 W, 31, 210 MHz, 40, 30 %, Yes\n"
    "2024/02/01 00:00:00.500, 0, NVIDIA H100, 99 %, 12345 MiB, [Unknown Error], 60, 1395 MHz, [N/A], [N/A], No\n";
static const char without_units[] =
    "2024/01/31 23:59:59.500, 0, NVIDIA H100, 45, 12345, 275.32, 52, 1410, [N/A], [N/A], No\n"
    "2024/01/31 23:59:59.503, 1, NVIDIA H100, 0, 0, 52.10, 31, 210, 40, 30, Yes\n"
    "2024/02/01 00:00:00.500, 0, NVIDIA H100, 99, 12345, [Unknown Error], 60, 1395, [N/A], [N/A], No\n";

static void check_smi_text(const char *what, const char *text, const char *fields)
{
    const struct recording_options options = { .fields = fields };
    struct recording r;
    struct why why = { 0 };

    if (!is_int(read_text(&r, text, &options, &why), 0, "%s: %s", what, why_text(&why)))
        return;
    is_int((int64_t)r.line_count, 3, "%s: lines", what);
    is_int(r.lines[1].time_ns, 3 * NS_PER_MS, "%s: milliseconds count", what);
    is_int(r.lines[2].time_ns, NS_PER_S, "%s: over midnight", what);
    is_int(value_in(&r, 0, METRIC_UTILIZATION_GPU, RECORDED_VALUE), 45000, "%s: percent", what);
    is_int(value_in(&r, 0, METRIC_MEMORY_USED, RECORDED_VALUE), INT64_C(12345) << 20, "%s: MiB",
           what);
    is_int(value_in(&r, 0, METRIC_POWER_USAGE, RECORDED_VALUE), 275320, "%s: W", what);
    is_int(value_in(&r, 0, METRIC_TEMPERATURE_GPU, RECORDED_VALUE), 52000, "%s: C", what);
    is_int(value_in(&r, 0, METRIC_CLOCK_SM, RECORDED_VALUE), 1410000, "%s: MHz", what);
    is_int(value_in(&r, 0, METRIC_TEMPERATURE_MEMORY, RECORDED_NONE), 0, "%s: [N/A] is nothing",
           what);
    is_int(value_in(&r, 1, METRIC_REMAPPED_ROWS_PENDING, RECORDED_VALUE), 1, "%s: Yes", what);
    is_int(value_in(&r, 2, METRIC_POWER_USAGE, RECORDED_NONE), 0, "%s: an error is nothing", what);
    recording_release(&r);
}

static void check_smi(void)
{
    static const char fields[] =
        "timestamp,index,name,utilization.gpu,memory.used,power.draw,"
        "temperature.gpu,clocks.sm,temperature.memory,fan.speed,remapped_rows.pending";
    struct text text = TEXT_INIT;

    text_addf(&text, "%s%s", heading, with_units);
    check_smi_text("a log of nvidia-smi", text_str(&text), NULL);
    text_cut(&text, 0);
    text_addf(&text, "%s%s", heading, without_units);
    check_smi_text("with nounits", text_str(&text), NULL);
    check_smi_text("with noheader", with_units, fields);
    check_smi_text("with noheader,nounits", without_units, fields);
    text_cut(&text, 0);
    text_addf(&text, "%s%.*s%s%s", heading, (int)(strchr(with_units, '\n') + 1 - with_units),
              with_units, heading, strchr(with_units, '\n') + 1);
    check_smi_text("with its heading again", text_str(&text), NULL);
    text_release(&text);
}

#define HEAD "time_s,gpu,temperature_gpu_c\n"

static const struct {
    const char *text, *sentence;
} wrongs[] = {
    { "", "f: there is no line with values" },
    { HEAD, "f: there is no line with values" },
    { "time_s,gpu\n1,0\n", "f:1:1: no column is a metric that can be dictated" },
    { HEAD "1,0,5x\n", "f:2:5: temperature_gpu_c: '5x' is not a value in degrees C" },
    { HEAD "1,0,-5\n", "f:2:5: temperature_gpu_c: '-5' is out of range" },
    { HEAD "1,0,50\nx,0,50\n", "f:3:1: time_s: 'x' is not a number of seconds" },
    { HEAD "1,,50\n", "f:2:3: gpu: '' is not a GPU" },
    { HEAD "1,0\n", "f:2:4: has 2 columns; allowed: 3" },
    { HEAD "1,0,50,7\n", "f:2:9: has 4 columns; allowed: 3" },
    { HEAD "2,0,50\n1,0,51\n", "f:3:1: is of a time before the line above" },
    { "gpu,temperature_gpu_c\n0,50\n", "f:2:1: does not say its time" },
    { "time_s,temperature_gpu_c\n1,50\n", "f:2:1: does not say of which GPU it is" },
    { "timestamp,index,power.draw\n31.1.2024,0,5 W\n",
      "f:2:1: timestamp: '31.1.2024' is not a time" },
    { "timestamp,index,power.draw\n2024/01/31 12:00:00,0,5 MiB\n",
      "f:2:23: power_usage_mw: '5 MiB' is not a value in mW" },
    { "{\"time_s\":1,\"gpu\":0,\"pstate\" 5}\n", "f:1:30: found '5' where ':' must stand" },
    { "{\"time_s\":1,\"gpu\":0\n", "f:1:20: ends where ',' or '}' must stand" },
    { "{\"time_s\":1,\"gpu\":0} x\n", "f:1:22: found 'x' where the line's end must stand" },
    { "{\"time_s\":1,\"gpu\":0,\"power_usage_mw\":\"5x\"}\n",
      "f:1:38: power_usage_mw: '5x' is not a value in mW" },
};

static void check_wrong(void)
{
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        struct recording r;
        struct why why = { 0 };
        int result = read_text(&r, wrongs[i].text, NULL, &why);

        ok(result < 0, "refused: %s", wrongs[i].text);
        is_str(strncmp(why_text(&why), wrongs[i].sentence, strlen(wrongs[i].sentence))
                   ? why_text(&why)
                   : wrongs[i].sentence,
               wrongs[i].sentence, "and the sentence says where and why");
        if (result == 0)
            recording_release(&r);
        why_release(&why);
    }
}

/* --- again and again ------------------------------------------------------------------------- */

enum { SAMPLES = 12 };

/* Everything that can be dictated. */
static void driven_columns(struct recording_columns *c)
{
    c->count = 0;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (metric_is_controlled(i))
            c->metrics[c->count++] = i;
}

/* Appends the lines of all GPUs as they are now, under another time and generation. */
static void add_sample(struct text *out, struct client *client, const struct recording_columns *c,
                       int number)
{
    struct reader_node node;
    struct reader_gpu gpu;

    if (reader_node(client->reader, &node) < 0)
        bail("the mount cannot be read");
    node.generation = (uint64_t)number;
    node.now_ns = number * NS_PER_S;
    for (int i = 0; i < node.gpu_count; i++) {
        if (reader_gpu(client->reader, i, &gpu) < 0)
            bail("GPU %d cannot be read", i);
        recording_line(out, RECORDING_CSV, c, &node, i, &gpu);
    }
}

static void open_client(struct client *client)
{
    const struct client_options options = { .mount = mounted.root };
    struct why why = { 0 };

    if (client_open(client, &options, &why) < 0)
        bail("%s", why_text(&why));
}

/* A node where much happens: a changing load, a profile, a failing sensor. */
static void record_life(struct text *out, const struct recording_columns *c)
{
    struct client client;

    mounted_up("--gpus", "3", "--speed", "0");
    open_client(&client);
    mkdir(file_path("workloads/w"), 0755);
    file_put("workloads/w/devices", "0");
    file_put("workloads/w/activity",
             "[{time: 5s, utilization: {random: {min: 10, max: 90}}, encoder: 30}, "
             "{time: 60s, utilization: 95, pcie_tx: 10%}], memory: 10GiB");
    file_put("gpus/1/control/profile", "chaos");
    recording_heading(out, RECORDING_CSV, c);
    for (int i = 0; i < SAMPLES; i++) {
        if (i == 4)
            file_put("gpus/2/control/fault", "sensor temperature_gpu_c for 2s");
        if (i == 7)
            file_put("gpus/2/control/fault", "ecc sbe 3");
        add_sample(out, &client, c, i);
        file_put("control/clock", i % 4 ? "step 1s" : "step 31s");
    }
    client_close(&client);
    ok(mounted_down(), "a node was recorded");
}

static void replay_life(struct text *out, const struct recording *r,
                        const struct recording_columns *c)
{
    struct client client;
    struct replay p = { .recording = r, .client = &client, .speed = 1 };
    struct why why = { 0 };
    size_t i = 0;

    mounted_up("--gpus", "3", "--speed", "0");
    open_client(&client);
    if (!is_int(replay_prepare(&p, NULL, 0, &why), 0, "the recording fits: %s", why_text(&why)))
        bail("nothing to replay");
    recording_heading(out, RECORDING_CSV, c);
    for (int sample = 0; sample < SAMPLES; sample++) {
        for (; i < r->line_count && r->lines[i].time_ns <= sample * NS_PER_S; i++)
            if (replay_line(&p, i, &why) < 0)
                diag("%s", why_text(&why));
        add_sample(out, &client, c, sample);
        file_put("control/clock", "step 1s");
    }
    is_int((int64_t)i, (int64_t)r->line_count, "all lines were played");
    ok(strcmp(file_text("gpus/0/control/power_usage_mw"), "auto") != 0, "values are dictated");
    changes_restore(&p.changes, NULL, NULL);
    is_str(file_text("gpus/0/control/power_usage_mw"), "auto", "and given back in the end");
    replay_release(&p);
    client_close(&client);
    ok(mounted_down(), "the node of the replay ends well");
}

static void check_again(void)
{
    struct recording_columns columns;
    struct text first = TEXT_INIT, second = TEXT_INIT;
    struct recording r;
    struct why why = { 0 };

    driven_columns(&columns);
    record_life(&first, &columns);
    if (is_int(read_text(&r, text_str(&first), NULL, &why), 0, "the recording is read: %s",
               why_text(&why))) {
        replay_life(&second, &r, &columns);
        is_str(text_str(&second), text_str(&first), "replayed and recorded again it is the same");
        recording_release(&r);
    }
    contains(text_str(&first), "NaN", "a failing sensor was in it");
    text_release(&first);
    text_release(&second);
}

/* --- what does not fit ----------------------------------------------------------------------- */

static void check_fit(void)
{
    static const char *const map[] = { "GPU-00000000-0000-0000-0000-000000000000=1" };
    static const struct {
        const char *text, *sentence;
        bool mapped;
    } rows[] = {
        { "time_s,gpu,power_usage_mw\n1,0,1\n2,0,999000\n",
          "f:3:5: power_usage_mw: 999W is more than GPU 0 can have; allowed: 0 to 70W, or --clamp",
          false },
        { "time_s,gpu,memory_used_bytes\n1,0,99999999999999\n",
          "f:2:5: memory_used_bytes: 99999999999999B is more than GPU 0 can have", false },
        { "time_s,gpu,utilization_gpu_percent\n1,0,101\n",
          "f:2:5: utilization_gpu_percent: 101% is more than GPU 0 can have; allowed: 0 to 100%",
          false },
        { "time_s,gpu,power_usage_mw\n1,5,1\n", "f has a GPU '5', and", false },
        { "time_s,gpu,power_usage_mw\n1,0,1\n",
          "--map: f has no GPU 'GPU-00000000-0000-0000-0000-000000000000'", true },
        { "time_s,gpu,power_usage_mw\n1,1,1\n1,GPU-00000000-0000-0000-0000-000000000000,1\n",
          "GPU '1' and GPU 'GPU-00000000-0000-0000-0000-000000000000' of f would both be GPU 1",
          true },
        { "time_s,gpu,remapped_rows_pending\n1,0,1\n", "", false },
        { "time_s,gpu,power_usage_mw\n1,GPU-00000000-0000-0000-0000-000000000000,1\n", "", true },
    };
    struct client client;

    mounted_up("--gpus", "2", "--model", "T4", "--speed", "0");
    open_client(&client);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct replay p = { .client = &client, .speed = 1 };
        struct recording r;
        struct why why = { 0 };

        read_text(&r, rows[i].text, NULL, &why);
        p.recording = &r;
        is_int(replay_prepare(&p, map, rows[i].mapped, &why) < 0, *rows[i].sentence != '\0',
               "fits or not: %s", rows[i].text);
        is_str(strncmp(why_text(&why), rows[i].sentence, strlen(rows[i].sentence))
                   ? why_text(&why)
                   : rows[i].sentence,
               rows[i].sentence, "and the sentence");
        replay_release(&p);
        recording_release(&r);
        why_release(&why);
    }
    client_close(&client);
    mounted_down();
}

int main(void)
{
    check_own();
    check_smi();
    check_wrong();
    check_again();
    check_fit();
    return tap_done();
}
