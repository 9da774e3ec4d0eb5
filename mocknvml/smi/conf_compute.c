/*
 * Conf compute: `conf-compute`: whether confidential computing is on, on this machine as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/smi.h"

static int say_result(nvmlReturn_t result, const char *title, const char *words)
{
    if (result == NVML_SUCCESS)
        printf("%s: %s\n", title, words);
    else
        printf("Failed to get %s: %s\n", title, api_error(result));
    return exit_status(result);
}

static int show_state(int (*show)(nvmlReturn_t, const nvmlConfComputeSystemState_t *))
{
    nvmlConfComputeSystemState_t state = { 0 };

    return show(ASK(SystemGetConfComputeState, &state), &state);
}

static int show_feature(nvmlReturn_t result, const nvmlConfComputeSystemState_t *state)
{
    return say_result(result, "CC status", state->ccFeature ? "ON" : "OFF");
}

static int show_tools(nvmlReturn_t result, const nvmlConfComputeSystemState_t *state)
{
    return say_result(result, "DevTools Mode", state->devToolsMode ? "ON" : "OFF");
}

static int show_environment(nvmlReturn_t result, const nvmlConfComputeSystemState_t *state)
{
    static const char *const words[] = { "UNAVAILABLE", "SIMULATION", "PRODUCTION" };

    return say_result(result, "CC Environment",
                      state->environment < 3 ? words[state->environment] : "UNKNOWN");
}

static int show_ready(void)
{
    unsigned int ready = 0;
    nvmlReturn_t result = ASK(SystemGetConfComputeGpusReadyState, &ready);

    return say_result(result, "Confidential Compute GPUs Ready state",
                      ready ? "ready" : "not-ready");
}

int conf_compute(int argc, char **argv)
{
    bool feature = false, tools = false, environment = false, ready = false;
    const struct argument arguments[] = {
        { "-f", "--get-cc-feature", &feature, NULL, "Whether it is on." },
        { "-d", "--get-devtools-mode", &tools, NULL, "Whether developers may look inside." },
        { "-e", "--get-environment", &environment, NULL, "What it is for." },
        { "-grs", "--get-gpus-ready-state", &ready, NULL, "Whether GPUs take work." },
        { 0 },
    };
    int status = arguments_parse(arguments, "conf-compute", argc, argv);

    if (status != 0)
        return status < 0 ? 0 : status;
    if (feature + tools + environment + ready != 1)
        return complain("conf-compute takes one of -f, -d, -e and -grs. Please run 'nvidia-smi "
                        "conf-compute -h' for help.");
    status = library_start();
    if (status != 0)
        return status;
    return feature ? show_state(show_feature)
           : tools ? show_state(show_tools)
           : ready ? show_ready()
                   : show_state(show_environment);
}
