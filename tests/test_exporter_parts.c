/*
 * The exporter's parts without a mount: numbers, labels, what clients accept, counters files, users, and what
 * is made of a view.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exporter/accept.h"
#include "exporter/counters.h"
#include "exporter/dcgm_fields.h"
#include "exporter/dialect.h"
#include "exporter/expose.h"
#include "exporter/render.h"
#include "exporter/users.h"
#include "exporter/xids.h"
#include "sim/why.h"
#include "tests/tap.h"

/* --- numbers --------------------------------------------------------------------------------- */

static void is_number(enum number_format format, int decimals, double value, const char *want)
{
    struct text out = TEXT_INIT;

    render_number(&out, format, decimals, value);
    is_str(text_str(&out), want, "%.17g in format %d is %s", value, (int)format, want);
    text_release(&out);
}

static void test_numbers(void)
{
    /* As Go's strconv.AppendFloat(…, 'g', -1, 64) has them. */
    is_number(NUMBER_GO, 0, 0, "0");
    is_number(NUMBER_GO, 0, 1, "1");
    is_number(NUMBER_GO, 0, 100, "100");
    is_number(NUMBER_GO, 0, 123456, "123456");
    is_number(NUMBER_GO, 0, 1000000, "1e+06");
    is_number(NUMBER_GO, 0, 7883194368, "7.883194368e+09");
    is_number(NUMBER_GO, 0, 0.42, "0.42");
    is_number(NUMBER_GO, 0, 0.0001, "0.0001");
    is_number(NUMBER_GO, 0, 0.00001, "1e-05");
    is_number(NUMBER_GO, 0, -28.07, "-28.07");
    is_number(NUMBER_GO, 0, 1e100, "1e+100");
    is_number(NUMBER_GO, 0, 0.1 + 0.2, "0.30000000000000004");
    is_number(NUMBER_GO, 0, NAN, "NaN");
    is_number(NUMBER_GO, 0, INFINITY, "+Inf");
    is_number(NUMBER_GO, 0, -INFINITY, "-Inf");
    /* As Python's prometheus_client has them. */
    is_number(NUMBER_PYTHON, 0, 50, "50.0");
    is_number(NUMBER_PYTHON, 0, 0, "0.0");
    is_number(NUMBER_PYTHON, 0, 73.6, "73.6");
    is_number(NUMBER_PYTHON, 0, 999999, "999999.0");
    is_number(NUMBER_PYTHON, 0, 1000000, "1e+06");
    is_number(NUMBER_PYTHON, 0, 10737418240, "1.073741824e+010");
    is_number(NUMBER_PYTHON, 0, 0.00001, "1e-05");
    is_number(NUMBER_FIXED, 6, 49.592, "49.592000");
    is_number(NUMBER_FIXED, 1, 50, "50.0");
    is_number(NUMBER_FIXED, 0, 50, "50");
    is_number(NUMBER_GENERAL, 0, 300.261, "300.261");
    is_number(NUMBER_INTEGER, 0, 50, "50");
}

/* --- what clients accept --------------------------------------------------------------------- */

static void test_accept(void)
{
    ok(!accepts_openmetrics(NULL), "no Accept: text");
    ok(!accepts_openmetrics("*/*"), "anything: text");
    ok(accepts_openmetrics("application/openmetrics-text"), "OpenMetrics alone");
    ok(accepts_openmetrics("APPLICATION/OpenMetrics-Text; Version=1.0.0; charset=utf-8"),
       "in any case");
    ok(accepts_openmetrics("text/plain;q=0.5,application/openmetrics-text;version=0.0.1;q=0.75"),
       "liked more than text");
    ok(!accepts_openmetrics("application/openmetrics-text;q=0.2,text/plain;q=0.5"), "liked less");
    ok(!accepts_openmetrics("application/openmetrics-text;version=2.0.0"),
       "a version of the future");
    ok(!accepts_openmetrics("application/openmetrics-text;q=0"), "q=0 is no");
    ok(!accepts_openmetrics(",;,=;q,"), "nonsense");
    ok(!accepts_gzip(NULL), "no Accept-Encoding: as it is");
    ok(accepts_gzip("gzip"), "gzip");
    ok(accepts_gzip("deflate, gzip;q=0.5, br"), "gzip among others");
    ok(!accepts_gzip("gzip;q=0"), "gzip refused");
    ok(!accepts_gzip("gzip;q=0.0, *"), "gzip refused, others not");
    ok(accepts_gzip("*"), "anything");
    ok(!accepts_gzip("identity"), "nothing but as it is");
    ok(!accepts_gzip("gzipped"), "something that only begins so");
}

/* --- counters files -------------------------------------------------------------------------- */

static void is_refused(const char *text, const char *sentence)
{
    struct counter_list list;
    struct why why = { 0 };

    is_int(counter_list_parse(&list, "c.csv", text, &why), -EINVAL, "refused: %s", sentence);
    contains(why_text(&why), sentence, "with this sentence");
    why_release(&why);
}

static void test_counters(void)
{
    struct counter_list list;
    struct why why = { 0 };
    int r = counter_list_parse(&list, "c.csv",
                               "# a comment, with commas\n\n"
                               "DCGM_FI_DEV_POWER_USAGE, gauge, Power\r\n"
                               " DCGM_FI_DEV_SM_CLOCK ,gauge,\"a \"\"quoted\"\", help\"\n"
                               "DCGM_FI_DRIVER_VERSION, label, v\n"
                               "DCGM_EXP_XID_ERRORS_COUNT, gauge, x\n"
                               "DCGM_FI_DEV_BOARD_POWER_WATTS, counter, newer name",
                               &why);

    is_int(r, 0, "a counters file is read");
    is_int((int64_t)list.count, 5, "with all of its lines");
    is_str(list.items[0].name, "DCGM_FI_DRIVER_VERSION", "sorted by number");
    ok(list.items[0].is_label && list.items[0].which == IDENTITY_DRIVER_VERSION, "a label");
    is_str(list.items[1].help, "a \"quoted\", help", "quotes and commas in a help");
    is_int(list.items[2].id, list.items[3].id, "both names are one field");
    is_int(list.items[3].which, METRIC_POWER_USAGE, "and one metric");
    is_int(list.items[4].source, COUNTER_XID_COUNT, "what the exporter counts itself is last");
    ok(counter_list_has(&list, COUNTER_XID_COUNT) && !counter_list_has(&list, COUNTER_P2P),
       "it is known what there is");
    counter_list_release(&list);
    why_release(&why);

    is_refused("a,b", "c.csv:1: has 2 columns; allowed: field, type, help");
    is_refused("#\nDCGM_FI_DEV_GPU_UTIL, gauge, a, b", "c.csv:2: has 4 columns");
    is_refused("DCGM_FI_DEV_GPU_UTIL, gauge, \"a", "c.csv:1: a quote is not closed");
    is_refused("DCGM_FI_DEV_GPU_UTIL, Gauge, a", "'Gauge' is not a type; allowed: gauge, counter");
    is_refused("DCGM_FI_DEV_GPU_UTLI, gauge, a", "did you mean 'DCGM_FI_DEV_GPU_UTIL'?");
}

/* Every field that a metric has is one that DCGM has, by both of its names. */
static void test_fields(void)
{
    int wrong = 0;

    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_info *m = &metric_infos[i];
        const struct dcgm_field *f = dcgm_field_find(m->dcgm_name);

        if (!m->dcgm_id)
            continue;
        if (!f || f->id != m->dcgm_id ||
            (*m->dcgm_name_46 && dcgm_field_find(m->dcgm_name_46) != f)) {
            diag("%s is not field %d", m->dcgm_name, m->dcgm_id);
            wrong++;
        }
    }
    is_int(wrong, 0, "the metrics' fields are DCGM's");
    ok(!dcgm_field_find("") && !dcgm_field_find("DCGM_FI_NONE"),
       "there are others that it has not");
    is_str(xid_message(0), "No Error", "Xid 0");
    is_str(xid_message(79), "GPU has fallen off the bus", "Xid 79");
    is_str(xid_message(172), "Uncorrectable SRAM Error", "Xid 172");
    is_str(xid_message(173), "Unknown Error", "Xid 173 is not known");
    is_str(xid_message(-1), "Unknown Error", "nor is -1");
}

/* --- users ----------------------------------------------------------------------------------- */

static void test_users(void)
{
    /* Of "secret", with the fewest rounds that there are. */
    static const char hash[] = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
    struct users *users = users_new();

    ok(users_is_hash(hash), "a bcrypt hash is one");
    ok(!users_is_hash("$6$abc$def") && !users_is_hash("secret"), "others are not");
    is_int(users_add(users, "prometheus", hash), 0, "a user is added");
    ok(!users_check(users, "prometheus", "Secret"), "a wrong password");
    ok(users_check(users, "prometheus", "secret"), "the right one");
    ok(users_check(users, "prometheus", "secret"), "the right one, remembered");
    ok(!users_check(users, "prometheus", "secret2"), "longer than the one remembered");
    ok(!users_check(users, "prometheus", ""), "none");
    ok(!users_check(users, "nobody", "secret"), "another name");
    users_free(users);
}

/* --- what is made of a view ------------------------------------------------------------------ */

static struct view_gpu gpus[2];
static struct view_process processes[3];
static struct dialect_set dialects;

/* Two GPUs; the first is shared by two containers, one of which has two processes. */
static struct view make_view(void)
{
    static const char *const uuids[] = { "GPU-a", "GPU-\"b\"\\" };

    memset(gpus, 0, sizeof(gpus));
    for (int i = 0; i < 2; i++) {
        gpus[i].index = gpus[i].position = i;
        gpus[i].names[IDENTITY_UUID] = uuids[i];
        gpus[i].names[IDENTITY_MINOR_NUMBER] = i ? "5" : "4";
        metric_mask_add(&gpus[i].sample.valid, METRIC_UTILIZATION_GPU);
        metric_mask_add(&gpus[i].sample.valid, METRIC_MEMORY_USED);
        gpus[i].sample.value[METRIC_UTILIZATION_GPU] = 79999; /* 79.999 %: files say 80 */
        gpus[i].sample.value[METRIC_MEMORY_USED] = 2047 * INT64_C(1048576) + 1048575;
    }
    processes[0] = (struct view_process){ 0, -1, 1, 1 << 20, 10, "a", "ns", "p", "c" };
    processes[1] = (struct view_process){ 0, -1, 2, 2 << 20, 20, "b", "ns", "p", "c" };
    processes[2] = (struct view_process){ 0, -1, 3, 4 << 20, 30, "d", "ns", "q", "c" };
    gpus[0].processes = processes;
    gpus[0].process_count = 3;
    return (struct view){ .generation = 7, .gpus = gpus, .gpu_count = 2 };
}

static char *page_of(const struct wishes *w, const struct counter_list *counters, struct text *out)
{
    struct view view = make_view();
    struct family_set set;

    text_cut(out, 0);
    is_int(expose(&set, &view, w, counters), 0, "a view is exposed");
    render_text(out, &set);
    family_set_release(&set);
    return (char *)text_str(out);
}

static void test_expose(void)
{
    struct counter_list counters;
    struct why why = { 0 };
    struct text out = TEXT_INIT;
    struct wishes w = { .hostname = "h", .pods = true, .devices = { .all = true } };
    char *page;

    if (dialect_set_load(&dialects, NULL, &why) < 0)
        bail("%s", why_text(&why));
    w.dialect = dialect_find(&dialects, "dcgm", &why);
    counter_list_parse(&counters, "c.csv",
                       "DCGM_FI_DEV_GPU_UTIL, gauge, u\nDCGM_FI_DEV_FB_USED, gauge, f\n"
                       "DCGM_FI_DEV_GPU_TEMP, gauge, t\n",
                       &why);
    page = page_of(&w, &counters, &out);
    contains(page, "# HELP DCGM_FI_DEV_GPU_UTIL u\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n",
             "a family");
    contains(page, "container=\"c\",namespace=\"ns\",pod=\"p\"} 30\n",
             "processes of a container add up");
    contains(page, "pod=\"q\"} 30\n", "and are apart from those of another");
    contains(page, "pod=\"p\"} 3\n", "so does their memory");
    contains(page, "UUID=\"GPU-\\\"b\\\"\\\\\",device=\"nvidia5\",Hostname=\"h\"} 80\n",
             "values of labels are escaped; a percentage is that of its file");
    contains(page, "Hostname=\"h\"} 2047\n", "MiB are cut");
    ok(!strstr(page, "GPU_TEMP"), "a family without samples is not there");
    ok(!strstr(page, "pci_bus_id"), "nor is a label without a value");

    w.devices = (struct device_choice){ .mode = DEVICES_GPUS, .ids = { 1 }, .count = 1 };
    ok(!strstr(page_of(&w, &counters, &out), "gpu=\"0\""), "only the GPU that was chosen");
    w.devices = (struct device_choice){ .mode = DEVICES_INSTANCES, .all = true };
    is_str(page_of(&w, &counters, &out), "", "no instances, no page");

    w.devices = (struct device_choice){ .all = true };
    w.dialect = dialect_find(&dialects, "dcgm-legacy-fake", &why);
    contains(page_of(&w, NULL, &out), "dcgm_gpu_utilization{gpu=\"2\",device=\"nvidia2\"} 80.0\n",
             "an identity that lists its families");
    counter_list_release(&counters);
    dialect_set_release(&dialects);
    text_release(&out);
    why_release(&why);
}

static void test_devices(void)
{
    struct device_choice c;
    struct why why = { 0 };
    static const char *const wrong[] = { "",    "x",  "g:",   "g:a",  "g:3-1",
                                         "f:1", "gg", "g:1,", "i:-1", "g:0-99999" };

    is_int(device_choice_parse(&c, "g:0,2-4", &why), 0, "GPUs by number");
    ok(c.mode == DEVICES_GPUS && !c.all && c.count == 4 && c.ids[3] == 4, "are all there");
    ok(device_choice_parse(&c, "i", &why) == 0 && c.mode == DEVICES_INSTANCES && c.all,
       "all instances");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        is_int(device_choice_parse(&c, wrong[i], &why), -EINVAL, "'%s' is no choice", wrong[i]);
    why_release(&why);
}

int main(void)
{
    test_numbers();
    test_accept();
    test_counters();
    test_fields();
    test_users();
    test_expose();
    test_devices();
    return tap_done();
}
