/*
 * Config: what the environment says over the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_CONFIG_ENV_H
#define SIM_CONFIG_ENV_H

#include "sim/config.h"

/*
 * NUM_FAKE_GPUS=8                     how many GPUs
 * METRIC_PROFILE=wave                 one profile (or cycle) for all, whatever the file says
 * GPU_PROFILES=static,spike           a profile for each, in turn; or 0:static,3:spike for single ones
 * METRIC_UPDATE_INTERVAL=30           seconds, or a time with its unit
 *
 * An empty variable counts as none. -EINVAL, -ERANGE, -E2BIG, -ENOMEM.
 */
int config_environment(struct config *cfg, char **environment, struct why *why);

#endif
