/*
 * What functions.def says that a function reads or writes is what it does: every one is called, on GPUs of several kinds
 * and with many arguments, while everything that passes between the library and the mount is noted down.
 *
 *     build/tests/test_nvml_files print >new && mv new mocknvml/functions.def
 *
 * writes the rows anew. This program is linked with the library's own objects, whose calls of the reader and of the
 * metric registry come by here (the linker's --wrap).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/reader.h"
#include "mocknvml/nvml.h"
#include "tests/mounted.h"
#include "tests/nvml_calls.h"

/* --- notes ----------------------------------------------------------------------------------- */

enum { NOTES_MAX = 256, METRICS_SHOWN = 6 };

static struct {
    bool open; /* notes are taken */
    bool metrics[METRIC_COUNT];
    char files[NOTES_MAX][128];
    int file_count;
    bool snapshot;
} notes;

static void note_file(const char *file)
{
    for (int i = 0; i < notes.file_count; i++)
        if (!strcmp(notes.files[i], file))
            return;
    if (notes.file_count == NOTES_MAX)
        bail("more files than there are");
    snprintf(notes.files[notes.file_count++], sizeof(notes.files[0]), "%s", file);
}

/* As the rows have it: below gpus/<i>/, without the address in sys/, otherwise from the root. */
static void note_path(const char *path)
{
    char shown[128];
    int used = 0;

    if (!notes.open)
        return;
    if (sscanf(path, "gpus/%*d/%n", &used) == 0 && used)
        note_file(path + used);
    else if (!strncmp(path, "sys/bus/pci/devices/", 20)) {
        snprintf(shown, sizeof(shown), "sys/…/%s", strrchr(path, '/') + 1);
        note_file(shown);
    } else
        note_file(path);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The notes as a row has them; metrics that are many are all. */
static const char *noted(void)
{
    static char text[4096];
    int metrics = 0, n = 0;

    for (int i = 0; i < METRIC_COUNT; i++)
        metrics += notes.metrics[i];
    if (metrics > METRICS_SHOWN)
        note_file("metrics/*");
    for (int i = 0; i < METRIC_COUNT; i++)
        if (metrics <= METRICS_SHOWN && notes.metrics[i])
            note_file(file_path("metrics/%s", metric_infos[i].name) + strlen(mounted.root) + 1);
    if (!notes.file_count && notes.snapshot)
        note_file("snapshot");
    qsort(notes.files, (size_t)notes.file_count, sizeof(notes.files[0]), compare);
    text[0] = '\0';
    for (int i = 0; i < notes.file_count; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s", i ? ", " : "", notes.files[i]);
    return text;
}

/* --- what comes by --------------------------------------------------------------------------- */

int __real_metric_read(const struct metric_sample *sample, enum metric id, int64_t *value);
int __wrap_metric_read(const struct metric_sample *sample, enum metric id, int64_t *value);
int __real_reader_gpu(struct reader *reader, int index, struct reader_gpu *gpu);
int __wrap_reader_gpu(struct reader *reader, int index, struct reader_gpu *gpu);
int __real_reader_node(struct reader *reader, struct reader_node *node);
int __wrap_reader_node(struct reader *reader, struct reader_node *node);
int __real_reader_history(struct reader *reader, int index, struct reader_history *history);
int __wrap_reader_history(struct reader *reader, int index, struct reader_history *history);
int __real_reader_text(struct reader *r, const char *path, char *buf, unsigned long size);
int __wrap_reader_text(struct reader *r, const char *path, char *buf, unsigned long size);
int __real_reader_write(struct reader *r, const char *path, const char *text);
int __wrap_reader_write(struct reader *r, const char *path, const char *text);
int __real_reader_open_file(struct reader *r, const char *path);
int __wrap_reader_open_file(struct reader *r, const char *path);

int __wrap_metric_read(const struct metric_sample *sample, enum metric id, int64_t *value)
{
    notes.metrics[id] |= notes.open;
    return __real_metric_read(sample, id, value);
}

int __wrap_reader_gpu(struct reader *reader, int index, struct reader_gpu *gpu)
{
    notes.snapshot |= notes.open;
    return __real_reader_gpu(reader, index, gpu);
}

int __wrap_reader_node(struct reader *reader, struct reader_node *node)
{
    notes.snapshot |= notes.open;
    return __real_reader_node(reader, node);
}

int __wrap_reader_history(struct reader *reader, int index, struct reader_history *history)
{
    note_path("history");
    return __real_reader_history(reader, index, history);
}

int __wrap_reader_text(struct reader *r, const char *path, char *buf, unsigned long size)
{
    note_path(path);
    return __real_reader_text(r, path, buf, size);
}

int __wrap_reader_write(struct reader *r, const char *path, const char *text)
{
    note_path(path);
    return __real_reader_write(r, path, text);
}

int __wrap_reader_open_file(struct reader *r, const char *path)
{
    note_path(path);
    return __real_reader_open_file(r, path);
}

/* --- calling --------------------------------------------------------------------------------- */

/* Forgets what the library knows from before; handles stay what they are. */
static void begin_anew(void)
{
    if (nvmlShutdown() != NVML_SUCCESS || nvmlInit_v2() != NVML_SUCCESS)
        bail("the library cannot begin anew");
}

/* The first GPU has one MIG device, whatever was done to it. */
static void make_mig_device(void)
{
    static char instances[1024];

    if (*instances && !strcmp(file_text("gpus/0/mig/instances"), instances))
        return;
    for (int gi = 0; gi < 15; gi++) {
        char command[32];

        snprintf(command, sizeof(command), "destroy %d", gi);
        file_put("gpus/0/mig/instances", command);
    }
    if (file_put("gpus/0/mig/instances", "create 2g.10gb") < 0)
        bail("no MIG device: %s", file_text("gpus/0/control/last_error"));
    snprintf(instances, sizeof(instances), "%s", file_text("gpus/0/mig/instances"));
}

/* A GPU, or behind the last one the MIG device of the first, with what handles there can be. */
static struct handles make_handles(unsigned int target, unsigned int gpus)
{
    struct handles h = { 0 };
    nvmlDevice_t mig;

    make_mig_device();
    for (unsigned int i = 0; i < gpus; i++)
        if (nvmlDeviceGetHandleByIndex_v2(i, &h.device) == NVML_ERROR_GPU_IS_LOST)
            file_put(file_path("gpus/%u/control/fault", i) + strlen(mounted.root) + 1, "recover");
    if (nvmlDeviceGetHandleByIndex_v2(target < gpus ? target : 0, &h.device) != NVML_SUCCESS)
        bail("no GPU %u", target);
    for (unsigned int gi = 0; gi < 15 && !h.gpu_instance; gi++)
        nvmlDeviceGetGpuInstanceById(h.device, gi, &h.gpu_instance);
    if (h.gpu_instance)
        nvmlGpuInstanceGetComputeInstanceById(h.gpu_instance, 0, &h.compute_instance);
    if (target == gpus && nvmlDeviceGetMigDeviceHandleByIndex(h.device, 0, &mig) == NVML_SUCCESS)
        h.device = mig;
    nvmlEventSetCreate(&h.events);
    nvmlGpmSampleAlloc(&h.sample);
    return h;
}

static nvmlSystemEventSet_t system_set; /* of the call that is being made */

static nvmlSystemEventSet_t make_system_set(void)
{
    nvmlSystemEventSetCreateRequest_v1_t made = { .version = NVML_STRUCT_VERSION(sizeof(made), 1) };

    nvmlSystemEventSetCreate(&made);
    return system_set = made.set;
}

/* Arguments that a function cannot do without. */
static void prepare(const struct call *call, const struct handles *h, uintptr_t *a)
{
    if (strstr(call->name, "DrainState") || strstr(call->name, "RemoveGpu") ||
        strstr(call->name, "DiscoverGpus")) {
        nvmlDeviceGetPciInfo_v3(h->device, (nvmlPciInfo_t *)a[0]);
        if (strstr(call->name, "Discover"))
            file_put("gpus/4/control/fault", "fallen_off_bus");
    }
    if (!strcmp(call->name, "nvmlGpmMetricsGet")) {
        nvmlGpmMetricsGet_t *get = (nvmlGpmMetricsGet_t *)a[0];

        get->sample1 = get->sample2 = h->sample;
        get->numMetrics = 128;
        for (unsigned int i = 0; i < get->numMetrics; i++)
            get->metrics[i].metricId = i;
        nvmlGpmSampleGet(h->device, h->sample);
    }
    if (strstr(call->name, "FieldValues")) {
        nvmlFieldValue_t *values = (nvmlFieldValue_t *)a[2];

        a[1] = 320;
        for (unsigned int i = 0; i < 320; i++)
            values[i].fieldId = i;
    }
    if (!strcmp(call->name, "nvmlDeviceGetHandleByUUID"))
        nvmlDeviceGetUUID(h->device, (char *)a[0], 96);
    if (!strcmp(call->name, "nvmlDeviceGetHandleByUUIDV")) {
        nvmlUUID_t *uuid = (nvmlUUID_t *)a[0];

        uuid->type = NVML_UUID_TYPE_ASCII;
        nvmlDeviceGetUUID(h->device, (char *)rooms[5], 96);
        memcpy(uuid->value.str, rooms[5], sizeof(uuid->value.str));
    }
    if (!strcmp(call->name, "nvmlSystemEventSetFree"))
        ((nvmlSystemEventSetFreeRequest_v1_t *)a[0])->set = make_system_set();
    if (!strcmp(call->name, "nvmlSystemRegisterEvents"))
        ((nvmlSystemRegisterEventRequest_v1_t *)a[0])->set = make_system_set();
    if (!strcmp(call->name, "nvmlSystemEventSetWait")) {
        nvmlSystemEventSetWaitRequest_v1_t *wait = (nvmlSystemEventSetWaitRequest_v1_t *)a[0];

        wait->set = make_system_set();
        wait->data = (nvmlSystemEventData_v1_t *)rooms[5];
        wait->dataSize = 1;
    }
}

/* Sets keep files of the mount open. */
static void tidy(const struct call *call, const uintptr_t *a)
{
    nvmlSystemEventSetFreeRequest_v1_t gone = { .version = NVML_STRUCT_VERSION(sizeof(gone), 1) };

    if (!strcmp(call->name, "nvmlEventSetCreate"))
        nvmlEventSetFree(*(nvmlEventSet_t *)a[0]);
    gone.set = !strcmp(call->name, "nvmlSystemEventSetCreate")
                   ? ((nvmlSystemEventSetCreateRequest_v1_t *)a[0])->set
                   : system_set;
    nvmlSystemEventSetFree(&gone);
    system_set = NULL;
}

/* How many numbers to try in one place: the more places, the fewer. */
static int tries(const struct call *call)
{
    int places = 0;

    for (int i = 0; call->kinds[i]; i++)
        places += call->kinds[i] == 'i';
    return strchr(call->kinds, 'e') || strstr(call->name, "Wait") ? 1
           : places > 2                                           ? 2
           : places > 1                                           ? 5
                                                                  : 16;
}

struct calling {
    const struct call *call;
    void *function;
    const struct handles *handles;
    bool fresh; /* nothing was called since the library began anew */
};

static void call_once(struct calling *c, const uintptr_t *numbers)
{
    uintptr_t a[ARGUMENTS];

    make_arguments(c->call, c->handles, a);
    for (int i = 0; c->call->kinds[i]; i++)
        if (c->call->kinds[i] == 'i')
            a[i] = numbers[i];
        else if (c->call->kinds[i] == 'd' && i > 0) /* the second of two */
            nvmlDeviceGetHandleByIndex_v2(1, (nvmlDevice_t *)&a[i]);
    prepare(c->call, c->handles, a);
    if (c->fresh)
        begin_anew();
    c->fresh = false;
    notes.open = true;
    invoke(c->function, a);
    notes.open = false;
    tidy(c->call, a);
}

/* With all numbers from `argument` on; the room of a text is one that is enough. */
static void call_all(struct calling *c, uintptr_t *numbers, int argument)
{
    const char *kinds = c->call->kinds;
    bool is_room;
    int count;

    while (kinds[argument] && kinds[argument] != 'i')
        argument++;
    if (!kinds[argument]) {
        call_once(c, numbers);
        return;
    }
    is_room = argument > 0 && kinds[argument - 1] == 't';
    count = is_room ? 1 : tries(c->call);
    for (int n = 0; n < count; n++) {
        numbers[argument] = is_room ? 96 : (uintptr_t)n;
        call_all(c, numbers, argument + 1);
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

enum status { implemented, constant, unsupported };

static const struct row {
    const char *name;
    enum status status;
    const char *files;
} rows[] = {
#define FUNCTION(name, status, files) { #name, status, files },
#include "mocknvml/functions.def"
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const struct {
    const char *name;
    void *function;
} functions[] = {
#define ROW(name, kinds, version) { #name, (void *)name },
#include "nvml_calls.inc"
#undef ROW
};

/* Those that open and close the mount are not called: they are the frame of all others. */
static bool is_frame(const char *name)
{
    return !strncmp(name, "nvmlInit", strlen("nvmlInit")) || !strcmp(name, "nvmlShutdown");
}

/* What a function reads and writes, on all kinds of GPUs. */
static const char *files_of(const char *name)
{
    unsigned int gpus;

    memset(&notes, 0, sizeof(notes));
    if (is_frame(name))
        return "snapshot";
    nvmlDeviceGetCount_v2(&gpus);
    for (int k = 0; k < CALLS; k++)
        for (unsigned int g = 0; !strcmp(calls[k].name, name) && g <= gpus; g++) {
            struct handles h = make_handles(g, gpus);
            struct calling c = { &calls[k], functions[k].function, &h, true };
            uintptr_t numbers[ARGUMENTS] = { 0 };

            call_all(&c, numbers, 0);
            nvmlEventSetFree(h.events);
            nvmlGpmSampleFree(h.sample);
        }
    return noted();
}

/* A row's line with other files. */
static void print_rows(void)
{
    FILE *file = fopen("mocknvml/functions.def", "re");
    char line[4096], name[128];

    while (file && fgets(line, sizeof(line), file)) {
        char *quote = strchr(line, '"');

        if (sscanf(line, "FUNCTION(%127[^,]", name) != 1 || !quote) {
            fputs(line, stdout);
            continue;
        }
        *quote = '\0';
        printf("%s\"%s\")\n", line, strstr(line, " unsupported") ? "" : files_of(name));
    }
    if (file)
        fclose(file);
}

/* What is about the library's own state needs nothing of the mount. */
static bool is_own(const char *name)
{
    static const char *const names[] = {
        "nvmlDeviceGetCount",     "nvmlDeviceGetCount_v2",      "nvmlEventSetFree",
        "nvmlSystemEventSetFree", "nvmlSystemRegisterEvents",   "nvmlGpmSampleAlloc",
        "nvmlGpmSampleFree",      "nvmlInternalGetExportTable",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* The checks of its handle, which every function makes, do not count. */
static void check_row(const struct row *row)
{
    const char *files;

    if (row->status == unsupported) {
        is_str(row->files, "", "%s is not supported and reads nothing", row->name);
        return;
    }
    files = files_of(row->name);
    if (row->status == constant) {
        is_str(row->files, "", "%s names no files", row->name);
        ok(!*files || !strcmp(files, "snapshot"), "%s reads none: %s", row->name, files);
        return;
    }
    is_str(files, row->files, "%s reads and writes what its row says", row->name);
    ok(*files || is_own(row->name), "%s reads or writes something", row->name);
}

int main(int argc, char **argv)
{
    mounted_up("--dev", "null", "--config", "tests/nvml_node.yaml");
    setenv("FAKEGPUFS_ROOT", mounted.root, 1);
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    if (nvmlInit_v2() != NVML_SUCCESS)
        bail("no init");
    if (argc > 1 && !strcmp(argv[1], "print")) {
        print_rows();
        return 0;
    }
    for (int i = 0; i < ROWS; i++)
        check_row(&rows[i]);
    nvmlShutdown();
    ok(mounted_down(), "and down again");
    return tap_done();
}
