/*
 * Event: what happened, as lines of text. See event.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/event.h"

#include <inttypes.h>

#include "sim/text.h"

/* What `code` and `value` mean in the line of an event; NULL: not shown. */
static const struct {
    const char *name, *code, *value, *text;
} rows[EVENT_KINDS] = {
    [EVENT_XID] = { "xid", "xid", 0, "message" },
    [EVENT_ECC_SBE] = { "ecc_sbe", 0, "count", 0 },
    [EVENT_ECC_DBE] = { "ecc_dbe", 0, "count", 0 },
    [EVENT_ROW_REMAP] = { "row_remap", "class", "count", 0 },
    [EVENT_PAGE_RETIRED] = { "page_retired", "class", "count", 0 },
    [EVENT_PSTATE] = { "pstate", "from", "to", 0 },
    [EVENT_CLOCKS] = { "clocks", "from", "to", 0 },
    [EVENT_NVLINK] = { "nvlink", "link", "up", 0 },
    [EVENT_LOST] = { "lost", 0, 0, 0 },
    [EVENT_RECOVERED] = { "recovered", 0, 0, 0 },
    [EVENT_FAULT] = { "fault", 0, 0, "fault" },
    [EVENT_WORKLOAD_STARTED] = { "workload_started", 0, 0, "workload" },
    [EVENT_WORKLOAD_ENDED] = { "workload_ended", "exit_code", 0, "workload" },
    [EVENT_GPU_ADDED] = { "gpu_added", 0, 0, "uuid" },
    [EVENT_GPU_REMOVED] = { "gpu_removed", 0, 0, "uuid" },
    [EVENT_CONFIG] = { "config", 0, 0, 0 },
    [EVENT_DRIVER] = { "driver", 0, 0, "version" },
};

const char *event_name(enum event_kind kind)
{
    return rows[kind].name;
}

static void add_address(struct text *out, const struct event *e)
{
    text_addf(out, "%04x:%02x:%02x.%x", e->domain, e->bus, e->device, e->function);
}

/* 17 12.300 xid gpu=0 pci=0000:06:00.0 xid=79 message="GPU has fallen off the bus." */
static void events_line(struct text *out, const struct event *e)
{
    text_addf(out, "%" PRIu64 " %" PRId64 ".%03d %s", e->number, e->time_ns / 1000000000,
              (int)(e->time_ns / 1000000 % 1000), rows[e->kind].name);
    if (e->gpu >= 0 || e->kind == EVENT_GPU_REMOVED) {
        if (e->gpu >= 0)
            text_addf(out, " gpu=%d", e->gpu);
        text_add(out, " pci=");
        add_address(out, e);
    }
    if (rows[e->kind].code)
        text_addf(out, " %s=%" PRId64, rows[e->kind].code, e->code);
    if (rows[e->kind].value)
        text_addf(out, " %s=%" PRId64, rows[e->kind].value, e->value);
    if (rows[e->kind].text)
        text_addf(out, " %s=\"%s\"", rows[e->kind].text, e->text);
    text_add(out, "\n");
}

/* 4,17,12300000,-;NVRM: Xid (PCI:0000:06:00): 79, pid='<unknown>', name=<unknown>, GPU has … */
static void kmsg_line(struct text *out, const struct event *e)
{
    size_t start = out->length;

    text_addf(out, "4,%" PRIu64 ",%" PRId64 ",-;NVRM: ", e->number, e->time_ns / 1000);
    switch ((enum event_kind)e->kind) {
    case EVENT_XID:
        text_addf(out,
                  "Xid (PCI:%04x:%02x:%02x): %" PRId64 ", pid='<unknown>', name=<unknown>, %s\n",
                  e->domain, e->bus, e->device, e->code, e->text);
        break;
    case EVENT_LOST:
        text_add(out, "GPU at PCI:");
        text_addf(out, "%04x:%02x:%02x: has fallen off the bus.\n", e->domain, e->bus, e->device);
        break;
    case EVENT_DRIVER:
        text_addf(out, "loading NVIDIA UNIX %s  %s\n",
                  e->code ? "x86_64 Kernel Module" : "Open Kernel Module for x86_64", e->text);
        break;
    case EVENT_GPU_REMOVED:
        text_add(out, "GPU ");
        add_address(out, e);
        text_add(out, " was removed.\n");
        break;
    default:
        text_cut(out, start); /* no driver would say a word */
        break;
    }
}

void event_line(struct text *out, enum stream stream, const struct event *e)
{
    if (stream == STREAM_KMSG)
        kmsg_line(out, e);
    else
        events_line(out, e);
}
