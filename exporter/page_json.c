/*
 * Page JSON: the view as the live page wants it. See page_json.h.
 *
 *     {"generation": 7, "time_ns": 700000000, "gpus": [{"index": 0, "name": "…", "lost": false,
 *       "metrics": {"temperature_gpu_c": 41, "power_usage_mw": null, …},
 *       "processes": [{"workload": "train", "pid": 100000, …}]}]}
 *
 * A GPU whose node has a name says so: "node". A metric is called as its file. A reading that failed is null; one that the GPU does not have is left out.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/page_json.h"

#include <errno.h>
#include <inttypes.h>

#include "exporter/xids.h"
#include "sim/bind.h"

/* What the cards show; all of it would be four times as much for every second of everybody who looks. */
static const enum metric shown[] = {
    METRIC_UTILIZATION_GPU,
    METRIC_UTILIZATION_MEMORY,
    METRIC_MEMORY_USED,
    METRIC_MEMORY_TOTAL,
    METRIC_POWER_USAGE,
    METRIC_POWER_LIMIT,
    METRIC_TEMPERATURE_GPU,
    METRIC_TEMPERATURE_MEMORY,
    METRIC_TEMPERATURE_SLOWDOWN,
    METRIC_TEMPERATURE_SHUTDOWN,
    METRIC_CLOCK_SM,
    METRIC_CLOCK_SM_MAX,
    METRIC_CLOCK_MEMORY,
    METRIC_FAN_SPEED,
    METRIC_PSTATE,
    METRIC_THROTTLE_REASONS,
    METRIC_XID_LAST,
    METRIC_ECC_SBE_VOLATILE_TOTAL,
    METRIC_ECC_DBE_VOLATILE_TOTAL,
    METRIC_REMAPPED_ROWS_PENDING,
    METRIC_REMAPPED_ROWS_FAILURE,
    METRIC_NVLINK_LINKS_ACTIVE_COUNT,
    METRIC_PCIE_LINK_GENERATION,
    METRIC_PCIE_LINK_WIDTH,
};

static const enum identity named[] = { IDENTITY_NAME, IDENTITY_UUID, IDENTITY_BUS_ID };

static void add_key(struct text *out, const char *separator, const char *key)
{
    text_addf(out, "%s\"%s\": ", separator, key);
}

static void add_text(struct text *out, const char *key, const char *value)
{
    add_key(out, ", ", key);
    bind_json_text(out, value ? value : "");
}

static void add_metrics(struct text *out, const struct metric_sample *sample)
{
    const char *separator = "";

    text_add(out, ", \"metrics\": {");
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        int64_t value;
        int r = metric_read(sample, shown[i], &value);

        if (r == -ENODATA)
            continue;
        add_key(out, separator, metric_infos[shown[i]].name);
        if (r < 0)
            text_add(out, "null");
        else
            unit_show(out, metric_infos[shown[i]].unit, value);
        separator = ", ";
    }
    text_add(out, "}");
}

static void add_processes(struct text *out, const struct view_gpu *gpu)
{
    text_add(out, ", \"processes\": [");
    for (int i = 0; i < gpu->process_count; i++) {
        const struct view_process *p = &gpu->processes[i];

        text_addf(out,
                  "%s{\"pid\": %" PRId64 ", \"memory_bytes\": %" PRId64
                  ", \"utilization_percent\": %" PRId64,
                  i ? ", " : "", p->pid, p->memory_bytes, p->utilization_percent);
        add_text(out, "workload", p->workload);
        add_text(out, "namespace", p->namespace);
        add_text(out, "pod", p->pod);
        add_text(out, "container", p->container);
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void add_instances(struct text *out, const struct view_gpu *gpu)
{
    text_add(out, ", \"instances\": [");
    for (int i = 0; i < gpu->instance_count; i++) {
        text_addf(out, "%s{\"gi\": %d", i ? ", " : "", gpu->instances[i].gi);
        add_text(out, "profile", gpu->instances[i].profile);
        text_add(out, "}");
    }
    text_add(out, "]");
}

static void add_xid(struct text *out, const struct view_gpu *gpu)
{
    int64_t xid;

    if (metric_read(&gpu->sample, METRIC_XID_LAST, &xid) == 0 && xid)
        add_text(out, "xid_message", xid_message(xid));
}

static void add_gpu(struct text *out, const struct view_node *node, const struct view_gpu *gpu)
{
    text_addf(out, "{\"index\": %d, \"lost\": %s", gpu->index, gpu->lost ? "true" : "false");
    if (node->name)
        add_text(out, "node", node->name);
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        add_text(out, identity_infos[named[i]].name, gpu->names[named[i]]);
    add_xid(out, gpu);
    add_metrics(out, &gpu->sample);
    add_processes(out, gpu);
    add_instances(out, gpu);
    text_add(out, "}");
}

void page_json(struct text *out, const struct view *view)
{
    const char *separator = "\n";

    text_addf(out, "{\"generation\": %" PRIu64 ", \"time_ns\": %" PRId64 ", \"gpus\": [",
              view->generation, view->now_ns);
    for (; view; view = view->next)
        for (int i = 0; i < view->gpu_count; i++) {
            const struct view_gpu *gpu = &view->gpus[i];

            if (view->nodes[gpu->node].hidden)
                continue;
            text_add(out, separator);
            add_gpu(out, &view->nodes[gpu->node], gpu);
            separator = ",\n";
        }
    text_add(out, "]}\n");
}
