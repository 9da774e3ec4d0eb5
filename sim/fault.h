/*
 * Fault: the grammar of faults.
 *
 *     xid 79                     an Xid is reported
 *     ecc sbe 5                  corrected (sbe) or uncorrected (dbe) memory errors
 *     rows uncorrectable 1       rows remapped (correctable, uncorrectable), or `rows failure`
 *     pages dbe 2                pages retired, on boards that retire pages
 *     thermal 2.5                cooling is worse by that factor
 *     power_brake                the board's power brake is pulled
 *     hang                       engines stay busy, nothing gets done
 *     nvlink 3 down              one link, or all: `nvlink down`, `nvlink up`
 *     sensor temperature_gpu_c   a reading fails (EIO)
 *     fallen_off_bus             the GPU is gone
 *     recover                    a reset: all of the above is over
 *
 * and, for those that last, an optional `for 30s`; a command, though no configuration, which has `at`,
 * takes `after 10m` as well. What a fault does to a GPU is fault_apply.c's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct text;
struct why;

enum fault_kind {
    FAULT_XID,
    FAULT_ECC,
    FAULT_ROWS,
    FAULT_PAGES,
    FAULT_THERMAL,
    FAULT_POWER_BRAKE,
    FAULT_HANG,
    FAULT_NVLINK,
    FAULT_SENSOR,
    FAULT_FALLEN_OFF_BUS,
    FAULT_RECOVER,
    FAULT_KINDS
};

/* What FAULT_ECC, FAULT_ROWS, FAULT_PAGES and FAULT_NVLINK are about. */
enum fault_which {
    FAULT_CORRECTABLE,   /* sbe */
    FAULT_UNCORRECTABLE, /* dbe */
    FAULT_FAILURE,
    FAULT_DOWN,
    FAULT_UP,
};

enum { FAULT_ALL_LINKS = -1, XID_MAX = 999 };

struct fault {
    uint32_t kind;    /* enum fault_kind */
    uint32_t which;   /* enum fault_which */
    int64_t number;   /* xid, count, link or metric */
    double factor;    /* thermal */
    int64_t for_ns;   /* 0: until recover */
    int64_t after_ns; /* 0: now */
};

/* Reads one fault. -EINVAL, -ERANGE with a sentence. */
int fault_parse(const char *text, struct fault *fault, struct why *why);

/* Appends the fault as fault_parse reads it. */
void fault_print(struct text *out, const struct fault *fault);

/* Appends the members of the JSON Schema for a fault. */
void fault_schema(struct text *out);

/* Whether it is a state, which can have a duration, rather than an instant. */
bool fault_lasts(const struct fault *fault);

/* What the driver's log says about an Xid, or a general sentence for one that is not known. */
const char *xid_message(int64_t xid);

#endif
