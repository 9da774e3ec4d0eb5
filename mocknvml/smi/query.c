/*
 * Query: `-q`, as text or as XML: what is said about the node, then the rows of each GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <time.h>

#include "mocknvml/smi/rows.h"
#include "mocknvml/smi/smi.h"

/* The layout of the elements: that of GPUs came with the 580 drivers. */
const char *xml_dtd(bool units)
{
    return units ? "nvsmi_unit_v4.dtd" : "nvsmi_device_v13.dtd";
}

static void node_values(struct out *out, const struct gpus *gpus)
{
    char text[TEXT_BYTES] = "N/A";
    time_t now = time(NULL);
    int cuda = 0;
    struct tm local;

    strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
    out_value(out, 0, "Timestamp", "timestamp", text);
    if (get_node(NULL, NODE_DRIVER, text) != NVML_SUCCESS)
        snprintf(text, sizeof(text), "N/A");
    out_value(out, 0, "Driver Version", "driver_version", text);
    if (ASK(SystemGetCudaDriverVersion_v2, &cuda) == NVML_SUCCESS)
        snprintf(text, sizeof(text), "%d.%d", cuda / 1000, cuda % 1000 / 10);
    else
        snprintf(text, sizeof(text), "Not Found");
    out_value(out, 0, "CUDA Version", "cuda_version", text);
    if (!out->xml)
        fputc('\n', out->file);
    snprintf(text, sizeof(text), "%u", gpus->present);
    out_value(out, 0, "Attached GPUs", "attached_gpus", text);
}

/* S-class boxes that hold several boards; a machine without them has none to tell about. */
static int units_print(struct out *out)
{
    unsigned int count = 0;
    char text[16];

    ASK(UnitGetCount, &count);
    snprintf(text, sizeof(text), "%u", count);
    out_value(out, 0, "Attached Units", "attached_units", text);
    return 0;
}

static void gpu_print(struct out *out, struct gpu *gpu, unsigned int displays)
{
    if (out->xml)
        fprintf(out->file, "\t<gpu id=\"%s\">\n", gpu->bus_id);
    else
        fprintf(out->file, "GPU %s\n", gpu->bus_id);
    rows_print(out, gpu, out->xml ? 0 : displays);
    fputs(out->xml ? "\t</gpu>\n\n" : "\n", out->file);
}

void log_print(FILE *file, struct gpus *gpus, const struct options *options)
{
    struct out out = { .file = file, .xml = options->xml, .column = OUT_COLUMN };

    fputs(out.xml ? "<nvidia_smi_log>\n" : "\n==============NVSMI LOG==============\n\n", file);
    node_values(&out, gpus);
    if (options->units)
        units_print(&out);
    for (unsigned int i = 0; i < gpus->count && !options->units; i++)
        gpu_print(&out, &gpus->items[i], options->displays);
    if (out.xml)
        fprintf(file, "</nvidia_smi_log>\n");
}

/* Says where the DTD is, or what it says. */
static int doctype_print(FILE *file, const struct options *options)
{
    int status = 0;

    fputs("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log ", file);
    if (!options->dtd) {
        fprintf(file, "SYSTEM \"%s\">\n", xml_dtd(options->units));
        return 0;
    }
    fputs("[\n", file);
    status = dtd_print(file, options->units);
    fputs("]>\n", file);
    return status;
}

int query_print(FILE *file, struct gpus *gpus, const struct options *options)
{
    int status = options->xml ? doctype_print(file, options) : 0;

    if (status == 0)
        log_print(file, gpus, options);
    return status;
}
