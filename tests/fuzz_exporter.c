/*
 * Fuzzes what the exporter reads: `make fuzz`, or `fuzz_exporter FILE` for one input.
 *
 * The first letter of an input says what the rest is:
 *
 *     c   a counters file       a   headers that say what a client accepts
 *     d   a choice of devices   anything else begins an identity
 *
 * What is accepted is used: a page is made of two GPUs, in both formats.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/accept.h"
#include "exporter/dialect.h"
#include "exporter/expose.h"
#include "exporter/render.h"
#include "tests/fuzz.h"

static struct view_gpu gpus[2];
static const struct view view = { .generation = 1, .gpus = gpus, .gpu_count = 2 };

/* The first has everything, the second nothing. */
static void fill_gpus(void)
{
    static const struct view_process pod = { 0, -1, 1, 1, 1, "w", "n", "p", "c" };
    static const struct view_instance instance = { 1, "1g.5gb", 5, 1 };

    gpus[1].index = gpus[1].position = 1;
    gpus[0].processes = &pod;
    gpus[0].process_count = 1;
    gpus[0].instances = &instance;
    gpus[0].instance_count = 1;
    for (int i = 0; i < IDENTITY_COUNT; i++)
        gpus[0].names[i] = "0x20B010DE\"\\";
    for (int i = 0; i < METRIC_COUNT; i++) {
        metric_mask_add(&gpus[0].sample.valid, (enum metric)i);
        gpus[0].sample.value[i] = INT64_MAX >> i % 60;
        if (i % 7 == 0)
            metric_mask_add(&gpus[0].sample.failed, (enum metric)i);
    }
    metric_mask_drop(&gpus[0].sample.valid, METRIC_MIG_MODE);
}

static void make_pages(const struct dialect *dialect, const struct counter_list *counters)
{
    const struct wishes wishes = { .dialect = dialect,
                                   .hostname = "host",
                                   .pods = true,
                                   .faulty = FAULTY_NAN,
                                   .xid_window_ns = 1,
                                   .clock_window_ns = 1,
                                   .sample_ns = 1,
                                   .devices = { .all = true } };
    struct family_set set;
    struct text out = TEXT_INIT;

    MUST(expose(&set, &view, &wishes, counters) == 0, "a view cannot be exposed");
    render_text(&out, &set);
    render_openmetrics(&out, &set);
    MUST(!out.failed, "a page cannot be made");
    text_release(&out);
    family_set_release(&set);
}

static void try_counters(const char *text, const struct dialect *dcgm)
{
    struct counter_list list;
    struct why why = { 0 };
    int r = counter_list_parse(&list, "fuzz", text, &why);

    if (r == 0) {
        make_pages(dcgm, &list);
        counter_list_release(&list);
    }
    check_refusal(r, &why);
}

static void try_identity(const char *text, size_t length)
{
    static const struct counter_list none;
    struct dialect_set set = { 0 };
    struct why why = { 0 };
    const struct dialect *d = dialect_parse(&set, "fuzz", text, length, &why);

    if (d)
        make_pages(d, &none);
    check_refusal(d ? 0 : -1, &why);
    dialect_set_release(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dialect_set dialects;
    static const struct dialect *dcgm;
    struct device_choice choice;
    struct why why = { 0 };
    char *text = malloc(size + 1);

    if (!dcgm) {
        MUST(dialect_set_load(&dialects, NULL, &why) == 0, "%s", why_text(&why));
        dcgm = dialect_find(&dialects, "dcgm", &why);
        fill_gpus();
    }
    memcpy(text, data, size);
    text[size] = '\0';
    switch (*text) {
    case 'c':
        try_counters(text + 1, dcgm);
        break;
    case 'a':
        accepts_openmetrics(text + 1);
        accepts_gzip(text + 1);
        break;
    case 'd':
        check_refusal(device_choice_parse(&choice, text + 1, &why), &why);
        break;
    default:
        try_identity(text, size);
    }
    free(text);
    return 0;
}
