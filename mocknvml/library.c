/*
 * Library: init and shutdown, and the mount between them. See library.h.
 *
 * Which mount: FAKEGPUFS_ROOT, else the mount this library was loaded from, else /run/fakegpufs, or driver in it where
 * that is a directory which containers share.
 *
 * A mount that went away and came back (its daemon was restarted, it was mounted again) is opened again
 * by whoever notices. A child after fork goes on with the parent's descriptors: they are read with pread only,
 * so the two do not disturb each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mocknvml/lock.h"
#include "mocknvml/state.h"
#include "mocknvml/visible.h"

struct library_state library;

/* --- the root -------------------------------------------------------------------------------- */

static bool is_root(const char *root)
{
    char snapshot[PATH_MAX + 16];

    snprintf(snapshot, sizeof(snapshot), "%s/snapshot", root);
    return access(snapshot, R_OK) == 0;
}

/* <mount>/usr/lib64/libnvidia-ml.so.1 was loaded: that mount is meant. */
static bool root_from_own_path(char *root, size_t size)
{
    static const char place[] = "/usr/lib64/";
    const char *found = NULL, *next;
    Dl_info info;

    if (!dladdr((void *)&library, &info) || !info.dli_fname)
        return false;
    for (next = strstr(info.dli_fname, place); next; next = strstr(next + 1, place))
        found = next;
    if (!found || found == info.dli_fname)
        return false;
    snprintf(root, size, "%.*s", (int)(found - info.dli_fname), info.dli_fname);
    return is_root(root);
}

static void find_root(char *root, size_t size)
{
    static const char usual[] = "/run/fakegpufs", shared[] = "/run/fakegpufs/driver";
    const char *said = getenv("FAKEGPUFS_ROOT");

    if (said && *said)
        snprintf(root, size, "%s", said);
    else if (!root_from_own_path(root, size))
        snprintf(root, size, "%s", !is_root(usual) && is_root(shared) ? shared : usual);
}

/* The device number of the mount that is at the root now; 0 when there is none. */
static dev_t mounted_device(const char *root)
{
    struct stat st;
    char path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/snapshot", root);
    return stat(path, &st) == 0 ? st.st_dev : 0;
}

static int open_reader(const char *root, struct reader **reader, dev_t *device)
{
    int result;

    *reader = NULL;
    *device = mounted_device(root);
    result = reader_open(reader, root);
    return result == 0 || result == -EPROTO || result == -ENOMEM || result == -EACCES ? result
                                                                                      : -ENOTCONN;
}

/* --- life ------------------------------------------------------------------------------------ */

/* Puts another mount, or none, in the place of the one that was; who calls closes that. */
static struct reader *put_reader(struct reader *reader, dev_t device)
{
    struct reader *before = library.reader;

    library.reader = reader;
    library.device = device;
    atomic_fetch_add(&library.mounts, 1);
    atomic_store(&library.checked_us, now_us());
    texts_forget();
    return before;
}

/* The first init of several: everything that takes time is done before the state is touched. */
static int first_init(void)
{
    const char *said = visible_wanted();
    char root[PATH_MAX], *list = said ? strdup(said) : NULL;
    struct reader *reader = NULL;
    struct listing listing = { 0 };
    dev_t device;
    int result = said && !list ? -ENOMEM : 0;

    find_root(root, sizeof(root));
    if (result == 0)
        result = open_reader(root, &reader, &device);
    if (result == 0)
        result = listing_read(&listing, reader, list);
    lock_alone();
    if (result == 0 && atomic_load(&library.users) == 0) {
        result = listing_install(&listing);
        if (result == 0) {
            char *old_list = library.visible_list;

            memcpy(library.root, root, sizeof(root));
            library.visible_list = list;
            list = old_list;
            reader = put_reader(reader, device);
            atomic_store(&library.users, 1);
        }
    } else if (result == 0) {
        atomic_fetch_add(&library.users, 1); /* somebody else was first */
    }
    unlock_alone();
    listing_release(&listing);
    reader_close(reader);
    free(list);
    return result;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    bool done = false;

    (void)flags; /* nothing is attached to, and no GPUs is no error either way */
    lock_alone();
    if (atomic_load(&library.users) > 0) {
        atomic_fetch_add(&library.users, 1);
        done = true;
    }
    unlock_alone();
    return done ? NVML_SUCCESS : nvml_error(first_init());
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
    struct reader *reader = NULL;

    lock_alone();
    if (atomic_load(&library.users) == 0)
        result = NVML_ERROR_UNINITIALIZED;
    else if (atomic_fetch_sub(&library.users, 1) == 1)
        reader = put_reader(NULL, 0);
    unlock_alone();
    reader_close(reader);
    return result;
}

nvmlReturn_t library_check(void)
{
    return atomic_load_explicit(&library.users, memory_order_acquire) ? NVML_SUCCESS
                                                                      : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t library_refuse(nvmlReturn_t refusal)
{
    nvmlReturn_t result = library_check();

    return result == NVML_SUCCESS ? refusal : result;
}

/* --- the mount that is there now ------------------------------------------------------------- */

/* Errors after which the mount at the root may be another one. */
static bool is_gone(int result)
{
    return result == -ENOTCONN || result == -ECONNABORTED || result == -ENODEV || result == -EIO ||
           result == -ESTALE || result == -EBADF;
}

static void copy_root(char *root)
{
    unsigned int place = lock_shared();

    memcpy(root, library.root, sizeof(library.root));
    unlock_shared(place);
}

/* Opens the mount that is at the root now, instead of the one that was. */
static int open_again(void)
{
    char root[PATH_MAX];
    struct reader *reader;
    dev_t device;
    int result;

    copy_root(root);
    result = open_reader(root, &reader, &device);
    lock_alone();
    if (atomic_load(&library.users))
        reader = put_reader(reader, result == 0 ? device : 0);
    unlock_alone();
    reader_close(reader);
    return result;
}

/* An open file keeps an unmounted daemon alive: now and then somebody must look which one is mounted. */
static bool is_due(void)
{
    enum { PERIOD_US = 500000 };
    int64_t checked = atomic_load_explicit(&library.checked_us, memory_order_relaxed), now;
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    now = ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
    return now - checked > PERIOD_US || checked - now > PERIOD_US;
}

static void check_mount(void)
{
    char root[PATH_MAX];
    unsigned int place;
    bool same;

    if (library_check() != NVML_SUCCESS || !is_due())
        return;
    atomic_store(&library.checked_us, now_us());
    copy_root(root);
    place = lock_shared();
    same = library.device && library.device == mounted_device(root);
    unlock_shared(place);
    if (!same)
        open_again();
}

void library_look(void)
{
    if (is_due())
        check_mount();
}

unsigned long long library_mount(void)
{
    return atomic_load(&library.mounts);
}

/* --- pages ----------------------------------------------------------------------------------- */

/* One try, with the lock that everybody shares. */
static int read_node(struct reader_node *node)
{
    unsigned int place = lock_shared();
    int result = library.reader ? reader_node(library.reader, node) : -ENOTCONN;

    unlock_shared(place);
    return result;
}

nvmlReturn_t node_read(struct reader_node *node)
{
    nvmlReturn_t checked = library_check();
    int result;

    if (checked != NVML_SUCCESS)
        return checked;
    result = read_node(node);
    if (is_gone(result) && (result = open_again()) == 0)
        result = read_node(node);
    return nvml_error(result);
}

/* The GPU is not where it was: finds it by its UUID. -ENODEV when it is gone. */
static int find_gpu(nvmlDevice_t device, struct reader_gpu *gpu)
{
    unsigned int place = lock_shared();
    struct reader_node node;
    int result = library.reader ? reader_node(library.reader, &node) : -ENOTCONN;
    bool found = false;

    for (int i = 0; result == 0 && !found && i < node.gpu_count; i++) {
        found = reader_gpu(library.reader, i, gpu) == 0 &&
                !strncmp(gpu->uuid, device->uuid, LENGTH_UUID);
        if (found)
            atomic_store(&device->index, i);
    }
    unlock_shared(place);
    return result < 0 ? result : found ? 0 : -ENODEV;
}

nvmlReturn_t device_read(nvmlDevice_t device, struct reader_gpu *gpu)
{
    nvmlReturn_t checked = library_check();
    unsigned int place;
    int result;

    if (checked != NVML_SUCCESS)
        return checked;
    library_look();
    place = lock_shared();
    if (!devices_know(device)) {
        unlock_shared(place);
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (device->parent)
        device = device->parent;
    if (hold_take(device, gpu)) {
        unlock_shared(place);
        return NVML_SUCCESS;
    }
    result = library.reader ? reader_gpu(library.reader, atomic_load(&device->index), gpu)
                            : -ENOTCONN;
    unlock_shared(place);
    if (result < 0 || strncmp(gpu->uuid, device->uuid, LENGTH_UUID)) {
        if (!is_gone(result) || (result = open_again()) == 0)
            result = find_gpu(device, gpu);
    }
    if (result == 0 && gpu->lost)
        result = -ENODEV;
    if (result == 0)
        hold_keep(device, gpu);
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
    unsigned int place;
    int result;

    if (refusal != NVML_SUCCESS)
        return refusal;
    place = lock_shared();
    result = library.reader ? reader_history(library.reader, atomic_load(&device->index), history)
                            : -ENOTCONN;
    unlock_shared(place);
    /* Another GPU took its place this moment: who asks again is told where it is. */
    return nvml_error(result == 0 && history->id != gpu.id ? -EBUSY : result);
}

/* --- files ----------------------------------------------------------------------------------- */

nvmlReturn_t root_text(const char *path, char *buf, size_t size)
{
    nvmlReturn_t checked = library_check();
    unsigned int place;
    int result;

    if (checked != NVML_SUCCESS)
        return checked;
    place = lock_shared();
    result = library.reader ? reader_text(library.reader, path, buf, size) : -ENOTCONN;
    unlock_shared(place);
    return nvml_error(result < 0 ? result : 0);
}

void gpu_path(nvmlDevice_t device, const char *path, char *buf, size_t size)
{
    nvmlDevice_t gpu = device->parent ? device->parent : device;

    snprintf(buf, size, "gpus/%d/%s", atomic_load(&gpu->index), path);
}

nvmlReturn_t device_text(nvmlDevice_t device, const char *path, char *buf, size_t size)
{
    nvmlReturn_t result = device_check(device);
    char file[128];

    if (result != NVML_SUCCESS)
        return result;
    gpu_path(device, path, file, sizeof(file));
    return root_text(file, buf, size);
}

nvmlReturn_t root_write(const char *path, const char *text)
{
    nvmlReturn_t checked = library_check();
    unsigned int place;
    int result;

    if (checked != NVML_SUCCESS)
        return checked;
    place = lock_shared();
    result = library.reader ? reader_write(library.reader, path, text) : -ENOTCONN;
    unlock_shared(place);
    hold_drop();
    return nvml_error(result);
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
    return root_write(file, text);
}

nvmlReturn_t root_open(const char *path, int *fd)
{
    nvmlReturn_t result = library_check();
    unsigned int place;

    if (result != NVML_SUCCESS)
        return result;
    place = lock_shared();
    *fd = library.reader ? reader_open_file(library.reader, path) : -ENOTCONN;
    unlock_shared(place);
    return nvml_error(*fd < 0 ? *fd : 0);
}
