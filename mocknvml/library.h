/*
 * Library: the state behind the functions, and the few helpers that they are one line over.
 *
 * Every exported function begins with a helper that says whether the library is initialized and whether the
 * handle is one of ours, so no function repeats those checks. Internal results are 0 or -errno;
 * nvml_error() is the only place that turns one into an nvmlReturn_t.
 *
 * Locking: see lock.h. Readings share the lock, so that a mount is not closed under them; what changes the
 * state holds it alone, and does its reading before. Nobody waits for events with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_LIBRARY_H
#define MOCKNVML_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fusefs/reader.h"
#include "mocknvml/nvml.h"

enum { LENGTH_UUID = 48, TABLE_BYTES = 16384 };

/*
 * A GPU, or a MIG device of one. Handles are given out for good: one that a program keeps over a shutdown
 * means the same GPU after the next init. `uuid` finds the GPU when it moved to another index.
 */
struct nvmlDevice_st {
    atomic_int index;       /* of the GPU in the mount, when last seen */
    int number;             /* among the devices that this process may see */
    nvmlDevice_t parent;    /* of a MIG device, otherwise NULL */
    int gi, ci;             /* of a MIG device, otherwise -1 */
    char uuid[LENGTH_UUID]; /* its own */
};

struct nvmlGpuInstance_st {
    nvmlDevice_t device;
    int gi;
};

struct nvmlComputeInstance_st {
    nvmlGpuInstance_t instance;
    int ci;
};

/* --- errors ---------------------------------------------------------------------------------- */

/* 0 or -errno as NVML says it. */
nvmlReturn_t nvml_error(int result);

/* --- life ------------------------------------------------------------------------------------ */

/* NVML_ERROR_UNINITIALIZED outside of init and shutdown. */
nvmlReturn_t library_check(void);

/* The same, else the refusal. */
nvmlReturn_t library_refuse(nvmlReturn_t refusal);

/* Looks whether the mount is still the one that is read, when that was not done for a while. */
void library_look(void);

/* A number for the mount that is read; another mount has another. */
unsigned long long library_mount(void);

/* How many GPUs there are for this process. */
nvmlReturn_t library_count(unsigned int *count);

/* Device `number`; NVML_ERROR_GPU_IS_LOST when it is lost. */
nvmlReturn_t library_device(unsigned int number, nvmlDevice_t *device);

/* The same whether it is lost or not; NULL when there is no such. */
nvmlDevice_t library_visible(unsigned int number);

/* The device of GPU `index` of the mount, or NULL when this process may not see it. */
nvmlDevice_t library_device_at(int index);

/* Whether this process may see that MIG device. */
struct mig_name;
bool library_sees_mig(nvmlDevice_t parent, const struct mig_name *name);

/* A handle for a MIG device, GPU instance, compute instance; NULL when there is no room for more. */
nvmlDevice_t library_mig_device(nvmlDevice_t parent, int gi, int ci, const char *uuid);
nvmlGpuInstance_t library_gpu_instance(nvmlDevice_t device, int gi);
nvmlComputeInstance_t library_compute_instance(nvmlGpuInstance_t instance, int ci);
bool library_knows_gpu_instance(nvmlGpuInstance_t instance);
bool library_knows_compute_instance(nvmlComputeInstance_t instance);

/* --- reading --------------------------------------------------------------------------------- */

/* The node as it is now. */
nvmlReturn_t node_read(struct reader_node *node);

/* Checks handle and state, then reads the GPU (of a MIG device: its parent), all of one generation. */
nvmlReturn_t device_read(nvmlDevice_t device, struct reader_gpu *gpu);

/* The same for functions that a MIG device does not have. */
nvmlReturn_t device_read_gpu(nvmlDevice_t device, struct reader_gpu *gpu);

/* For device_read, while this thread holds (see hold.h): the page that is held, or the one to hold from now on. */
bool hold_take(nvmlDevice_t device, struct reader_gpu *gpu);
void hold_keep(nvmlDevice_t device, const struct reader_gpu *gpu);
void hold_drop(void);

/* What the GPU did in the last seconds; not of a MIG device. */
nvmlReturn_t device_history(nvmlDevice_t device, struct reader_history *history);

/* Checks only; what a setter or a constant needs. */
nvmlReturn_t device_check(nvmlDevice_t device);

/* What drivers no longer do: NVML_ERROR_DEPRECATED from that one on. */
enum { DISPLAY_MODE_GONE = 580, APPLICATION_CLOCKS_GONE = 590, POWER_MODE_GONE = 590 };
nvmlReturn_t device_answers_until(nvmlDevice_t device, int driver);

/* What older chips do not do: NVML_ERROR_NOT_SUPPORTED for those before that compute capability, in tenths. */
enum { AFTER_A100 = 86, HOPPER = 90 };
nvmlReturn_t device_answers_since(nvmlDevice_t device, int capability);

/* "gpus/<i>/<path>" of a device that was checked. */
void gpu_path(nvmlDevice_t device, const char *path, char *buf, size_t size);

/* A file of the device's GPU: `path` below gpus/<i>/. */
nvmlReturn_t device_text(nvmlDevice_t device, const char *path, char *buf, size_t size);
nvmlReturn_t device_write(nvmlDevice_t device, const char *path, const char *text);

/* A file below the root. */
nvmlReturn_t root_text(const char *path, char *buf, size_t size);
nvmlReturn_t root_write(const char *path, const char *text);

/* Opens a file below the root; the descriptor is the caller's. */
nvmlReturn_t root_open(const char *path, int *fd);

/* An identity text. NVML_ERROR_INSUFFICIENT_SIZE when it does not fit. */
nvmlReturn_t device_identity(nvmlDevice_t device, enum identity id, char *buf, unsigned int length);

/* A table in memory, read line by line with reader_line. */
struct table {
    char text[TABLE_BYTES];
    char *rest;
};

/* Tables that do not change while the GPU is there; NVML_ERROR_NOT_SUPPORTED when it has no such file. */
enum table_name { TABLE_BOARD, TABLE_CLOCKS, TABLE_MIG_PROFILES, TABLE_COUNT };
nvmlReturn_t device_table(nvmlDevice_t device, enum table_name name, struct table *table);

/* The number of a line `name number` in gpus/<i>/board. */
nvmlReturn_t device_fact(nvmlDevice_t device, const char *name, int64_t *value);

/* --- arguments ------------------------------------------------------------------------------- */

/* Initialized, and the arguments are good: looked at before the device is, as the driver's library does. */
nvmlReturn_t arguments_check(bool good);

/* The same, when all it needs is somewhere to put the answer. */
nvmlReturn_t answer_check(const void *answer);

/* The same for a structure that begins with its version. */
nvmlReturn_t struct_check(const void *structure, unsigned int version);
#define STRUCT_CHECK(structure, number) \
    struct_check((structure), NVML_STRUCT_VERSION(sizeof(*(structure)), (number)))

/* What a driver says of a feature that this GPU has not. */
nvmlReturn_t device_unsupported(nvmlDevice_t device);

/* --- values ---------------------------------------------------------------------------------- */

/* A metric in the unit that its file shows, rounded as there. 0, -ENODATA, -EIO. */
int sample_value(const struct metric_sample *sample, enum metric id, int64_t *value);

/* Several of them; the first that cannot be read decides. */
nvmlReturn_t sample_values(const struct metric_sample *sample, const enum metric *ids, int count,
                           int64_t *values);

/* The same of a GPU, all of one generation. */
nvmlReturn_t get_values(nvmlDevice_t device, const enum metric *ids, int count, int64_t *values);

/* One metric of a GPU, as the type that the function gives. */
nvmlReturn_t get_i64(nvmlDevice_t device, enum metric id, int64_t *value);
nvmlReturn_t get_uint(nvmlDevice_t device, enum metric id, unsigned int *value);
nvmlReturn_t get_u64(nvmlDevice_t device, enum metric id, unsigned long long *value);
nvmlReturn_t get_int(nvmlDevice_t device, enum metric id, int *value);
nvmlReturn_t get_state(nvmlDevice_t device, enum metric id, nvmlEnableState_t *state);

/* A constant, after the checks. */
nvmlReturn_t give_uint(nvmlDevice_t device, unsigned int constant, unsigned int *value);
nvmlReturn_t give_fact(nvmlDevice_t device, const char *name, unsigned int *value);

/* A structure of nothing but zeros, after the checks. */
nvmlReturn_t give_zeros(nvmlDevice_t device, void *structure, size_t size);

/* Copies a text into a caller's buffer. */
nvmlReturn_t give_text(const char *text, char *buf, unsigned int length);

/*
 * The protocol of most lists: *count holds the room and gets the number there are; NULL with no room asks for
 * it. `item` is copied while there is room.
 */
struct list {
    void *items;
    size_t item_size;
    unsigned int room, used;
};

void list_add(struct list *list, const void *item);
nvmlReturn_t list_end(const struct list *list, unsigned int *count);

/* In a child: what other threads of the parent were doing with event sets is undone. */
void events_after_fork(void);

/* Microseconds since the epoch, as NVML's time stamps count. */
int64_t now_us(void);

#endif
