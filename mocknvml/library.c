/*
 * Library: the state behind the functions. See library.h.
 *
 * Which mount: FAKEGPUFS_ROOT, else the mount this library was loaded from, else /run/fakegpufs.
 * Which GPUs: those that NVIDIA_VISIBLE_DEVICES names, numbered anew; the answer is that of the first init.
 *
 * A mount that went away and came back (its daemon was restarted, it was mounted again) is opened again
 * by whoever notices. A child after fork starts with a lock that nobody holds and the parent's state: the
 * descriptors are read with pread only, so parent and child do not disturb each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* As many as a configuration may have GPUs, and MIG devices on some of them. */
enum { DEVICES_MAX = 4096 + 1024, INSTANCES_MAX = 1024, TEXTS_MAX = 128 };

struct identity_text {
    int result; /* 0, or what reading gave */
    char text[TEXTS_MAX];
};

static struct {
    pthread_rwlock_t lock;
    int users;             /* inits without their shutdown */
    struct reader *reader; /* NULL while there is no mount */
    dev_t device;          /* of the mount that `reader` reads */
    char root[PATH_MAX];
    int64_t checked_us; /* when the mount was last seen to be the one at `root` */

    /* Never shrink: see struct nvmlDevice_st. */
    struct nvmlDevice_st devices[DEVICES_MAX];
    int device_count;
    struct nvmlGpuInstance_st gpu_instances[INSTANCES_MAX];
    int gpu_instance_count;
    struct nvmlComputeInstance_st compute_instances[INSTANCES_MAX];
    int compute_instance_count;

    nvmlDevice_t visible[DEVICES_MAX];
    unsigned int visible_count;

    uint64_t texts_version;       /* plan version that `texts` is of */
    struct identity_text **texts; /* by device, of IDENTITY_COUNT; entries NULL until asked for */
    int text_count;               /* entries of `texts` */
} state = { .lock = PTHREAD_RWLOCK_INITIALIZER };

/* --- the lock -------------------------------------------------------------------------------- */

/* A page that a child finds empty: cheaper than asking for the process id each time. */
static volatile int *fork_mark(void)
{
    static volatile int *mark;
    void *page;

    if (mark)
        return mark;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) < 0)
        return NULL;
    mark = page;
    *mark = 1;
    return mark;
}

/* Another thread may have held the lock when this process was forked, and does not exist in it. */
static void after_fork(void)
{
    static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;
    volatile int *mark = fork_mark();

    if (mark && !*mark) {
        state.lock = fresh;
        *mark = 1;
    }
}

static void lock_shared(void)
{
    after_fork();
    pthread_rwlock_rdlock(&state.lock);
}

static void lock_alone(void)
{
    after_fork();
    pthread_rwlock_wrlock(&state.lock);
}

static void unlock(void)
{
    pthread_rwlock_unlock(&state.lock);
}

/* --- the root -------------------------------------------------------------------------------- */

static void set_root(const char *path, size_t length)
{
    snprintf(state.root, sizeof(state.root), "%.*s", (int)length, path);
}

/* <mount>/usr/lib64/libnvidia-ml.so.1 was loaded: that mount is meant. */
static bool root_from_own_path(void)
{
    static const char place[] = "/usr/lib64/";
    char snapshot[PATH_MAX];
    const char *found = NULL, *next;
    Dl_info info;

    if (!dladdr((void *)&state, &info) || !info.dli_fname)
        return false;
    for (next = strstr(info.dli_fname, place); next; next = strstr(next + 1, place))
        found = next;
    if (!found || found == info.dli_fname)
        return false;
    snprintf(snapshot, sizeof(snapshot), "%.*s/snapshot", (int)(found - info.dli_fname),
             info.dli_fname);
    if (access(snapshot, R_OK) < 0)
        return false;
    set_root(info.dli_fname, (size_t)(found - info.dli_fname));
    return true;
}

static void find_root(void)
{
    const char *root = getenv("FAKEGPUFS_ROOT");

    if (root && *root)
        set_root(root, strlen(root));
    else if (!root_from_own_path())
        set_root("/run/fakegpufs", strlen("/run/fakegpufs"));
}

/* --- visible devices ------------------------------------------------------------------------- */

/* Whether `word` of NVIDIA_VISIBLE_DEVICES means this GPU: its index, or the beginning of its UUID. */
static bool names_gpu(const char *word, size_t length, int index, const char *uuid)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", index);
    if (strlen(number) == length && !memcmp(number, word, length))
        return true;
    return length >= 8 && !strncmp(word, uuid, length);
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && !strncmp(text, word, length);
}

static bool is_visible(const char *list, int index, const char *uuid)
{
    if (!list || !*list)
        return true;
    while (*list) {
        size_t length = strcspn(list, ",");

        if (is_word(list, length, "all") || names_gpu(list, length, index, uuid))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

/* The handle of that UUID, which may be new. NULL: there is no room. */
static nvmlDevice_t intern_device(const char *uuid, nvmlDevice_t parent, int gi, int ci)
{
    nvmlDevice_t device;

    for (int i = 0; i < state.device_count; i++)
        if (!strncmp(state.devices[i].uuid, uuid, LENGTH_UUID))
            return &state.devices[i];
    if (state.device_count == DEVICES_MAX)
        return NULL;
    device = &state.devices[state.device_count++];
    *device = (struct nvmlDevice_st){ .parent = parent, .gi = gi, .ci = ci };
    snprintf(device->uuid, sizeof(device->uuid), "%.*s", LENGTH_UUID - 1, uuid);
    return device;
}

static int list_devices(void)
{
    const char *list = getenv("NVIDIA_VISIBLE_DEVICES");
    struct reader_node node;
    struct reader_gpu gpu;
    int result = reader_node(state.reader, &node);

    state.visible_count = 0;
    for (int i = 0; result == 0 && i < node.gpu_count; i++) {
        nvmlDevice_t device;

        result = reader_gpu(state.reader, i, &gpu);
        if (result < 0 || !is_visible(list, i, gpu.uuid))
            continue;
        device = intern_device(gpu.uuid, NULL, -1, -1);
        if (!device)
            return -ENOMEM;
        device->index = i;
        device->number = (int)state.visible_count;
        state.visible[state.visible_count++] = device;
    }
    return result;
}

/* --- life ------------------------------------------------------------------------------------ */

static void forget_texts(void)
{
    for (int i = 0; i < state.text_count; i++)
        free(state.texts[i]);
    free(state.texts);
    state.texts = NULL;
    state.text_count = 0;
}

static void close_mount(void)
{
    reader_close(state.reader);
    state.reader = NULL;
    forget_texts();
}

/* The device number of the mount that is at the root now; 0 when there is none. */
static dev_t mounted_device(void)
{
    struct stat st;
    char path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/snapshot", state.root);
    return stat(path, &st) == 0 ? st.st_dev : 0;
}

/* Opens the mount that is at the root now, instead of the one that was. */
static int open_mount(void)
{
    int result;

    close_mount();
    state.device = mounted_device();
    result = reader_open(&state.reader, state.root);
    __atomic_store_n(&state.checked_us, now_us(), __ATOMIC_RELAXED);
    if (result < 0)
        state.reader = NULL;
    return result == 0 || result == -EPROTO || result == -ENOMEM || result == -EACCES ? result
                                                                                      : -ENOTCONN;
}

static int first_init(void)
{
    int result;

    find_root();
    result = open_mount();
    if (result == 0)
        result = list_devices();
    if (result < 0)
        close_mount();
    return result;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    nvmlReturn_t result = NVML_SUCCESS;

    (void)flags; /* nothing is attached to, and no GPUs is no error either way */
    fork_mark();
    lock_alone();
    if (state.users == 0)
        result = nvml_error(first_init());
    if (result == NVML_SUCCESS)
        state.users++;
    unlock();
    return result;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t result = NVML_SUCCESS;

    lock_alone();
    if (state.users == 0)
        result = NVML_ERROR_UNINITIALIZED;
    else if (--state.users == 0)
        close_mount();
    unlock();
    return result;
}

nvmlReturn_t library_check(void)
{
    nvmlReturn_t result;

    lock_shared();
    result = state.users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    unlock();
    return result;
}

nvmlReturn_t library_unsupported(void)
{
    nvmlReturn_t result = library_check();

    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

/* --- handles --------------------------------------------------------------------------------- */

/* Whether the pointer is entry 0 … count-1 of the array at `base`. */
static bool is_entry(const void *pointer, const void *base, size_t size, int count)
{
    uintptr_t at = (uintptr_t)pointer, start = (uintptr_t)base;

    return at >= start && at < start + (size_t)count * size && (at - start) % size == 0;
}

static bool knows_device(nvmlDevice_t device)
{
    return is_entry(device, state.devices, sizeof(state.devices[0]), state.device_count);
}

bool library_knows_gpu_instance(nvmlGpuInstance_t instance)
{
    bool known;

    lock_shared();
    known = is_entry(instance, state.gpu_instances, sizeof(state.gpu_instances[0]),
                     state.gpu_instance_count);
    unlock();
    return known;
}

bool library_knows_compute_instance(nvmlComputeInstance_t instance)
{
    bool known;

    lock_shared();
    known = is_entry(instance, state.compute_instances, sizeof(state.compute_instances[0]),
                     state.compute_instance_count);
    unlock();
    return known;
}

nvmlReturn_t library_count(unsigned int *count)
{
    nvmlReturn_t result = library_check();

    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    lock_shared();
    *count = state.visible_count;
    unlock();
    return NVML_SUCCESS;
}

nvmlReturn_t library_device(unsigned int number, nvmlDevice_t *device)
{
    nvmlReturn_t result = library_check();
    struct reader_gpu gpu;
    nvmlDevice_t found;

    if (result != NVML_SUCCESS)
        return result;
    lock_shared();
    found = number < state.visible_count ? state.visible[number] : NULL;
    unlock();
    if (!found || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    result = device_read(found, &gpu);
    if (result == NVML_SUCCESS)
        *device = found;
    return result;
}

nvmlDevice_t library_device_at(int index)
{
    nvmlDevice_t found = NULL;

    lock_shared();
    for (unsigned int i = 0; i < state.visible_count && !found; i++)
        if (state.visible[i]->index == index)
            found = state.visible[i];
    unlock();
    return found;
}

nvmlDevice_t library_mig_device(nvmlDevice_t parent, int gi, int ci, const char *uuid)
{
    nvmlDevice_t device;

    lock_alone();
    device = intern_device(uuid, parent, gi, ci);
    unlock();
    return device;
}

nvmlGpuInstance_t library_gpu_instance(nvmlDevice_t device, int gi)
{
    nvmlGpuInstance_t found = NULL;

    lock_alone();
    for (int i = 0; i < state.gpu_instance_count && !found; i++)
        if (state.gpu_instances[i].device == device && state.gpu_instances[i].gi == gi)
            found = &state.gpu_instances[i];
    if (!found && state.gpu_instance_count < INSTANCES_MAX) {
        found = &state.gpu_instances[state.gpu_instance_count++];
        *found = (struct nvmlGpuInstance_st){ device, gi };
    }
    unlock();
    return found;
}

nvmlComputeInstance_t library_compute_instance(nvmlGpuInstance_t instance, int ci)
{
    nvmlComputeInstance_t found = NULL;

    lock_alone();
    for (int i = 0; i < state.compute_instance_count && !found; i++)
        if (state.compute_instances[i].instance == instance && state.compute_instances[i].ci == ci)
            found = &state.compute_instances[i];
    if (!found && state.compute_instance_count < INSTANCES_MAX) {
        found = &state.compute_instances[state.compute_instance_count++];
        *found = (struct nvmlComputeInstance_st){ instance, ci };
    }
    unlock();
    return found;
}

/* --- reading --------------------------------------------------------------------------------- */

/* Errors after which the mount at the root may be another one. */
static bool is_gone(int result)
{
    return result == -ENOTCONN || result == -ECONNABORTED || result == -ENODEV || result == -EIO ||
           result == -ESTALE || result == -EBADF;
}

/* The GPU is not where it was: finds it by its UUID. -ENODEV when it is gone. */
static int find_gpu(nvmlDevice_t device, struct reader_gpu *gpu)
{
    struct reader_node node;
    int result = reader_node(state.reader, &node);

    for (int i = 0; result == 0 && i < node.gpu_count; i++) {
        if (reader_gpu(state.reader, i, gpu) == 0 &&
            !strncmp(gpu->uuid, device->uuid, LENGTH_UUID)) {
            device->index = i;
            return 0;
        }
    }
    return result < 0 ? result : -ENODEV;
}

static int read_again(nvmlDevice_t device, struct reader_gpu *gpu, int result)
{
    lock_alone();
    if (!state.users)
        result = -ENOTCONN;
    else if (!is_gone(result) || (result = open_mount()) == 0)
        result = find_gpu(device, gpu);
    unlock();
    return result;
}

/* An open file keeps an unmounted daemon alive: now and then somebody must look which one is mounted. */
static bool is_due(void)
{
    enum { PERIOD_US = 500000 };
    int64_t checked = __atomic_load_n(&state.checked_us, __ATOMIC_RELAXED), now;
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    now = ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
    return now - checked > PERIOD_US || checked - now > PERIOD_US;
}

static void check_mount(void)
{
    lock_alone();
    if (state.users && is_due()) {
        if (mounted_device() != state.device)
            open_mount();
        __atomic_store_n(&state.checked_us, now_us(), __ATOMIC_RELAXED);
    }
    unlock();
}

/* Whether there is something to read; under the lock. */
static bool is_ready(void)
{
    return state.users && state.reader;
}

nvmlReturn_t node_read(struct reader_node *node)
{
    int result;

    lock_shared();
    if (!state.users) {
        unlock();
        return NVML_ERROR_UNINITIALIZED;
    }
    result = is_ready() ? reader_node(state.reader, node) : -ENOTCONN;
    unlock();
    if (result == 0 || !is_gone(result))
        return nvml_error(result);
    lock_alone();
    result = state.users ? open_mount() : -ENOTCONN;
    if (result == 0)
        result = reader_node(state.reader, node);
    unlock();
    return nvml_error(result);
}

nvmlReturn_t device_read(nvmlDevice_t device, struct reader_gpu *gpu)
{
    int result;

    if (is_due())
        check_mount();
    lock_shared();
    if (!state.users || !knows_device(device)) {
        nvmlReturn_t refusal = state.users ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;

        unlock();
        return refusal;
    }
    if (device->parent)
        device = device->parent;
    result = is_ready() ? reader_gpu(state.reader, device->index, gpu) : -ENOTCONN;
    unlock();
    if (result < 0 || strncmp(gpu->uuid, device->uuid, LENGTH_UUID))
        result = read_again(device, gpu, result);
    if (result == 0 && gpu->lost)
        result = -ENODEV;
    return nvml_error(result);
}

nvmlReturn_t device_read_gpu(nvmlDevice_t device, struct reader_gpu *gpu)
{
    nvmlReturn_t result = device_read(device, gpu);

    return result == NVML_SUCCESS && device->parent ? NVML_ERROR_NOT_SUPPORTED : result;
}

nvmlReturn_t device_check(nvmlDevice_t device)
{
    struct reader_gpu gpu;

    return device_read(device, &gpu);
}

nvmlReturn_t device_history(nvmlDevice_t device, struct reader_history *history)
{
    struct reader_gpu gpu;
    nvmlReturn_t refusal = device_read_gpu(device, &gpu);
    int result;

    if (refusal != NVML_SUCCESS)
        return refusal;
    lock_shared();
    result = is_ready() ? reader_history(state.reader, device->index, history) : -ENOTCONN;
    unlock();
    /* Another GPU took its place this moment: who asks again is told where it is. */
    return nvml_error(result == 0 && history->id != gpu.id ? -EBUSY : result);
}

/* --- files ----------------------------------------------------------------------------------- */

static nvmlReturn_t read_file(const char *path, char *buf, size_t size)
{
    int result;

    lock_shared();
    result = is_ready() ? reader_text(state.reader, path, buf, size) : -ENOTCONN;
    unlock();
    return nvml_error(result < 0 ? result : 0);
}

static void gpu_path(nvmlDevice_t device, const char *path, char *buf, size_t size)
{
    nvmlDevice_t gpu = device->parent ? device->parent : device;

    snprintf(buf, size, "gpus/%d/%s", gpu->index, path);
}

nvmlReturn_t device_text(nvmlDevice_t device, const char *path, char *buf, size_t size)
{
    nvmlReturn_t result = device_check(device);
    char file[128];

    if (result != NVML_SUCCESS)
        return result;
    gpu_path(device, path, file, sizeof(file));
    return read_file(file, buf, size);
}

nvmlReturn_t device_write(nvmlDevice_t device, const char *path, const char *text)
{
    nvmlReturn_t result = device_check(device);
    char file[128];

    if (result != NVML_SUCCESS)
        return result;
    if (device->parent)
        return NVML_ERROR_NOT_SUPPORTED;
    gpu_path(device, path, file, sizeof(file));
    lock_shared();
    result = nvml_error(is_ready() ? reader_write(state.reader, file, text) : -ENOTCONN);
    unlock();
    return result;
}

nvmlReturn_t root_text(const char *path, char *buf, size_t size)
{
    nvmlReturn_t result = library_check();

    return result == NVML_SUCCESS ? read_file(path, buf, size) : result;
}

nvmlReturn_t root_open(const char *path, int *fd)
{
    nvmlReturn_t result = library_check();

    if (result != NVML_SUCCESS)
        return result;
    lock_shared();
    *fd = is_ready() ? reader_open_file(state.reader, path) : -ENOTCONN;
    unlock();
    return nvml_error(*fd < 0 ? *fd : 0);
}

/* --- identity -------------------------------------------------------------------------------- */

/* The cached texts of a device, or NULL without memory; those of another plan are forgotten. */
static struct identity_text *device_texts(nvmlDevice_t device, uint64_t plan_version)
{
    int slot = (int)(device - state.devices);

    if (state.texts_version != plan_version)
        forget_texts();
    state.texts_version = plan_version;
    if (!state.texts) {
        state.texts = calloc(DEVICES_MAX, sizeof(*state.texts));
        state.text_count = state.texts ? DEVICES_MAX : 0;
    }
    if (state.texts && !state.texts[slot]) {
        state.texts[slot] = calloc(IDENTITY_COUNT, sizeof(struct identity_text));
        for (int i = 0; state.texts[slot] && i < IDENTITY_COUNT; i++)
            state.texts[slot][i].result = -EAGAIN;
    }
    return state.texts ? state.texts[slot] : NULL;
}

/* Identities change with the plan only, and reading a file takes a hundred times as long as a page. */
static int read_identity(nvmlDevice_t device, uint64_t plan_version, enum identity id, char *buf,
                         size_t size)
{
    struct identity_text *texts = device_texts(device, plan_version), *text;
    char file[128], name[64];
    int result;

    if (!texts)
        return -ENOMEM;
    text = &texts[id];
    if (text->result == -EAGAIN) {
        snprintf(name, sizeof(name), "identity/%s", identity_infos[id].name);
        gpu_path(device, name, file, sizeof(file));
        result = reader_text(state.reader, file, text->text, sizeof(text->text));
        if (result < 0 && result != -ENODATA)
            return result;
        text->result = result < 0 ? result : 0;
    }
    if (text->result == 0)
        snprintf(buf, size, "%s", text->text);
    return text->result;
}

nvmlReturn_t device_identity(nvmlDevice_t device, enum identity id, char *buf, unsigned int length)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read(device, &gpu);
    char text[TEXTS_MAX];
    int found;

    if (result != NVML_SUCCESS)
        return result;
    lock_alone();
    found = is_ready() ? read_identity(device->parent ? device->parent : device, gpu.plan_version,
                                       id, text, sizeof(text))
                       : -ENOTCONN;
    unlock();
    return found < 0 ? nvml_error(found) : give_text(text, buf, length);
}

nvmlReturn_t device_fact(nvmlDevice_t device, const char *name, int64_t *value)
{
    char text[TABLE_BYTES], *rest = text, *line;
    nvmlReturn_t result = device_text(device, "board", text, sizeof(text));
    size_t length = strlen(name);

    if (result != NVML_SUCCESS)
        return result;
    while ((line = table_line(&rest)))
        if (!strncmp(line, name, length) && line[length] == ' ' &&
            sscanf(line + length, "%" SCNd64, value) == 1)
            return NVML_SUCCESS;
    return NVML_ERROR_NOT_SUPPORTED;
}

/* --- values ---------------------------------------------------------------------------------- */

int sample_value(const struct metric_sample *sample, enum metric id, int64_t *value)
{
    int64_t parts = unit_parts(metric_infos[id].unit), stored;
    int result = metric_read(sample, id, &stored);

    if (result == 0)
        *value = (stored < 0 ? stored - parts / 2 : stored + parts / 2) / parts;
    return result;
}

nvmlReturn_t get_i64(nvmlDevice_t device, enum metric id, int64_t *value)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);

    return result == NVML_SUCCESS ? nvml_error(sample_value(&gpu.sample, id, value)) : result;
}

nvmlReturn_t get_uint(nvmlDevice_t device, enum metric id, unsigned int *value)
{
    int64_t number = 0;
    nvmlReturn_t result = get_i64(device, id, &number);

    if (result != NVML_SUCCESS)
        return result;
    if (!value)
        return NVML_ERROR_INVALID_ARGUMENT;
    *value = number < 0 ? 0 : number > UINT_MAX ? UINT_MAX : (unsigned int)number;
    return NVML_SUCCESS;
}

nvmlReturn_t get_u64(nvmlDevice_t device, enum metric id, unsigned long long *value)
{
    int64_t number = 0;
    nvmlReturn_t result = get_i64(device, id, &number);

    if (result != NVML_SUCCESS)
        return result;
    if (!value)
        return NVML_ERROR_INVALID_ARGUMENT;
    *value = (unsigned long long)number;
    return NVML_SUCCESS;
}

nvmlReturn_t get_int(nvmlDevice_t device, enum metric id, int *value)
{
    int64_t number = 0;
    nvmlReturn_t result = get_i64(device, id, &number);

    if (result != NVML_SUCCESS)
        return result;
    if (!value)
        return NVML_ERROR_INVALID_ARGUMENT;
    *value = (int)number;
    return NVML_SUCCESS;
}

nvmlReturn_t get_state(nvmlDevice_t device, enum metric id, nvmlEnableState_t *on)
{
    unsigned int number;
    nvmlReturn_t result = get_uint(device, id, on ? &number : NULL);

    if (result == NVML_SUCCESS)
        *on = number ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return result;
}

nvmlReturn_t give_uint(nvmlDevice_t device, unsigned int constant, unsigned int *value)
{
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    if (!value)
        return NVML_ERROR_INVALID_ARGUMENT;
    *value = constant;
    return NVML_SUCCESS;
}

nvmlReturn_t give_fact(nvmlDevice_t device, const char *name, unsigned int *value)
{
    int64_t number;
    nvmlReturn_t result = device_fact(device, name, &number);

    if (result != NVML_SUCCESS)
        return result;
    if (!value)
        return NVML_ERROR_INVALID_ARGUMENT;
    *value = (unsigned int)number;
    return NVML_SUCCESS;
}

nvmlReturn_t give_text(const char *text, char *buf, unsigned int length)
{
    if (!buf)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buf, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

void list_add(struct list *list, const void *item)
{
    if (list->items && list->used < list->room)
        memcpy((char *)list->items + list->used * list->item_size, item, list->item_size);
    list->used++;
}

nvmlReturn_t list_end(const struct list *list, unsigned int *count)
{
    bool short_of_room = list->used > list->room || (list->used && !list->items);

    *count = list->used;
    return short_of_room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

char *table_line(char **text)
{
    while (*text && **text) {
        char *line = *text, *end = strchr(line, '\n');

        *text = end ? end + 1 : line + strlen(line);
        if (end)
            *end = '\0';
        if (*line && *line != '#')
            return line;
    }
    return NULL;
}

int64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}
