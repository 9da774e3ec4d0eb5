/*
 * Processes: who uses a GPU, in one list, whatever kind of work they do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_PROCESSES_H
#define SMI_PROCESSES_H

#include "mocknvml/smi/gpu.h"

enum process_kind { PROCESS_COMPUTE = 1, PROCESS_GRAPHICS = 2, PROCESS_MPS = 4, PROCESS_ANY = 7 };

struct process {
    unsigned int pid;
    unsigned int kinds;       /* of enum process_kind */
    unsigned long long bytes; /* all ones: not known */
    unsigned int gi, ci;      /* all ones: not on a MIG device */
};

struct processes {
    struct process *items;
    unsigned int count;
};

/* In the order of their numbers. The list is to be freed even when it is a failure. */
nvmlReturn_t processes_get(struct gpu *gpu, enum process_kind kinds, struct processes *list);
void processes_release(struct processes *list);

/* "C", "G", "C+G", "M+C". */
const char *process_type(const struct process *process);

/* The path of a process, printable; its end alone. "[Not Found]" when it is gone. */
void process_name(unsigned int pid, char *name, size_t size);
const char *process_command(const char *name);

/* Of accounting. */
nvmlReturn_t accounted_pids(struct gpu *gpu, unsigned int **pids, unsigned int *count);

/* Utilization of one process since `after_us`. */
struct usage {
    unsigned int pid;
    unsigned long long time_us;
    unsigned int sm, memory, encoder, decoder, jpeg, ofa; /* percent; all ones: not known */
};

struct usages {
    struct usage *items;
    unsigned int count;
};

nvmlReturn_t usages_get(struct gpu *gpu, unsigned long long after_us, struct usages *list);
void usages_release(struct usages *list);

#endif
