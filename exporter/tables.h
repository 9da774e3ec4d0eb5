/*
 * Tables: what a mount says of its GPUs in text files: names, processes, MIG instances, links.
 *
 * One file has the processes of all GPUs, and each GPU a file of its own for who wants few. All lists belong to the
 * arena. 0 or -errno, unless said otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_TABLES_H
#define EXPORTER_TABLES_H

#include <stddef.h>

#include "sim/metric.h"

struct arena;
struct reader;
struct view_gpu;

struct tables {
    struct reader *reader; /* of the mount; not owned */
    char *buffer;          /* with the file that was read last; owned, grows as needed */
    size_t size;
};

void tables_release(struct tables *tables);

/* Reads a file as a whole. Its length or -errno. */
int tables_read(struct tables *tables, const char *path);

/* The names of `count` GPUs, of gpus/inventory when that was read. */
void tables_names(struct tables *tables, struct arena *arena, const char *(*names)[IDENTITY_COUNT],
                  int count);

/* The processes of all GPUs; of one GPU: -EAGAIN when it was lost meanwhile. One that is lost has none. */
int tables_all_processes(struct tables *tables, struct arena *arena, struct view_gpu *gpus,
                         int gpu_count);
int tables_processes(struct tables *tables, struct arena *arena, struct view_gpu *gpu);

/* The GPU instances of a GPU, none while its MIG mode is off; its links, none on boards that have none. */
int tables_instances(struct tables *tables, struct arena *arena, struct view_gpu *gpu);
int tables_links(struct tables *tables, struct arena *arena, struct view_gpu *gpu);

#endif
