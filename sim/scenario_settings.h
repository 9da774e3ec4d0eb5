/*
 * Scenario, `set`: a mapping of control files of a GPU to what is written to them. For scenario.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_SCENARIO_SETTINGS_H
#define SIM_SCENARIO_SETTINGS_H

#include "sim/bind.h"

/* Reads into a struct bind_list of struct scenario_setting. */
extern const struct bind_custom scenario_settings_custom;

/* Appends the schema of such a mapping. */
void scenario_settings_schema(struct text *out);

#endif
