/*
 * Config: what the texts of a configuration look like: UUIDs, bus ids, versions, names of nodes, CPUs.
 *
 * A shape is all that is known of such a text: whether it is one, in words for sentences, and as a regular
 * expression for the JSON Schema.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_SHAPES_H
#define SIM_CONFIG_SHAPES_H

#include "sim/bind.h"

extern const struct bind_shape uuid_shape, serial_shape, bus_id_shape;
extern const struct bind_shape driver_version_shape, cuda_version_shape, nvml_version_shape;
extern const struct bind_shape node_name_shape, node_names_shape;
extern const struct bind_shape cpu_list_shape;

bool uuid_ok(const char *text);

/* Takes a bus id apart. -EINVAL when it is none. */
int bus_id_parse(const char *text, uint32_t *domain, uint32_t *bus, uint32_t *device,
                 uint32_t *function);

#endif
