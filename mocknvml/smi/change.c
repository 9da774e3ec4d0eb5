/*
 * Change: the options that set something on GPUs, one row each. See smi.h.
 *
 * Every argument is looked at before anything is changed. A GPU that has no such thing to set is a warning;
 * anything else ends the program with the library's error as its exit status.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mocknvml/smi/smi.h"

/* What an argument means. */
struct setting {
    long numbers[2];
    double watts;
};

enum {
    NEEDS_PERSISTENCE = 1 << 0, /* what it sets is forgotten with the driver's last user */
    TELLS_INVALID = 1 << 1,     /* apply itself says what is wrong with a value */
    TELLS_FAILURE = 1 << 2,     /* apply itself says whatever went wrong */
    UNWARNED = 1 << 3,          /* newer than the sentence that a warning is one */
};

struct change_kind {
    const char *letter, *name; /* "-pm", "--persistence-mode" */
    const char *what;          /* "persistence mode": for sentences */
    bool (*parse)(const char *argument, struct setting *setting);
    const char *allowed;
    /* NVML_ERROR_RESET_REQUIRED: it is done, and takes effect after a reboot. */
    nvmlReturn_t (*apply)(FILE *file, struct gpu *gpu, const struct setting *setting);
    const char *unsupported; /* the sentence for a GPU that has no such thing, about its bus id */
    const char *refused;     /* for who may not, about its bus id; NULL: the one of all others */
    unsigned traits;
    const char *help; /* what is allowed follows it */
};

/* --- arguments ---------------------------------------------------------------------------------- */

static bool parse_word(const char *text, const char *const *words, long count, long *number)
{
    for (long i = 0; i < count; i++) {
        char digit[2] = { (char)('0' + i), '\0' };

        if (words[i] && (!strcmp(text, digit) || !strcasecmp(text, words[i]))) {
            *number = i;
            return true;
        }
    }
    return false;
}

#define PARSE_WORD(text, words, number) \
    parse_word(text, words, sizeof(words) / sizeof((words)[0]), number)

static bool parse_switch(const char *text, struct setting *setting)
{
    static const char *const words[] = { "DISABLED", "ENABLED" };

    return PARSE_WORD(text, words, &setting->numbers[0]);
}

static bool parse_counters(const char *text, struct setting *setting)
{
    static const char *const words[] = { "VOLATILE", "AGGREGATE" };

    return PARSE_WORD(text, words, &setting->numbers[0]);
}

static const char *const compute_modes[] = { "DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED",
                                             "EXCLUSIVE_PROCESS" };

static bool parse_compute_mode(const char *text, struct setting *setting)
{
    return PARSE_WORD(text, compute_modes, &setting->numbers[0]);
}

static bool parse_operation_mode(const char *text, struct setting *setting)
{
    static const char *const words[] = { "ALL_ON", "COMPUTE", "LOW_DP" };

    return PARSE_WORD(text, words, &setting->numbers[0]);
}

/* Limits that have a name, as drivers number them. */
static const struct {
    const char *name;
    unsigned int number;
} limits[] = { { "tdp", 0xffffff00u }, { "unlimited", 0xffffff01u } };

static bool parse_mhz(const char *text, char **end, long *mhz)
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        size_t length = strlen(limits[i].name);

        if (!strncasecmp(text, limits[i].name, length)) {
            *mhz = limits[i].number;
            *end = (char *)text + length;
            return true;
        }
    }
    if (*text < '0' || *text > '9')
        return false;
    *mhz = strtol(text, end, 10);
    return *mhz <= 1000000;
}

static const char *mhz_text(unsigned int mhz, char text[16])
{
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (limits[i].number == mhz)
            return limits[i].name;
    snprintf(text, 16, "%u", mhz);
    return text;
}

static bool parse_pair(const char *text, struct setting *setting)
{
    char *end;

    return parse_mhz(text, &end, &setting->numbers[0]) && *end == ',' &&
           parse_mhz(end + 1, &end, &setting->numbers[1]) && *end == '\0';
}

/* Of memory and graphics; names mean nothing here. */
static bool parse_clocks(const char *text, struct setting *setting)
{
    return parse_pair(text, setting) && setting->numbers[0] < limits[0].number &&
           setting->numbers[1] < limits[0].number;
}

/* "1500" means "1500,1500". */
static bool parse_range(const char *text, struct setting *setting)
{
    char *end;

    if (parse_mhz(text, &end, &setting->numbers[0]) && *end == '\0') {
        setting->numbers[1] = setting->numbers[0];
        return true;
    }
    return parse_pair(text, setting) && setting->numbers[0] <= setting->numbers[1];
}

/* Who may switch boosting. */
static bool parse_permission(const char *text, struct setting *setting)
{
    static const char *const words[] = { "UNRESTRICTED", "RESTRICTED" };

    return PARSE_WORD(text, words, &setting->numbers[0]);
}

static bool parse_celsius(const char *text, struct setting *setting)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    setting->numbers[0] = strtol(text, &end, 10);
    return *end == '\0' && setting->numbers[0] <= 200;
}

static bool parse_watts(const char *text, struct setting *setting)
{
    char *end;

    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    setting->watts = strtod(text, &end);
    return *end == '\0' && setting->watts >= 0; /* whether it is too much is the GPU's to say */
}

/* --- changes ------------------------------------------------------------------------------------ */

static const char warning_only[] = "Treating as warning and moving on.\n";

/* Whether `now` was read and is what is asked for; says so. */
static bool is_already(FILE *file, struct gpu *gpu, nvmlReturn_t read, long now, long asked,
                       const char *what, const char *state)
{
    if (read != NVML_SUCCESS || now != asked)
        return false;
    fprintf(file, "%s is already %s for GPU %s.\n", what, state, gpu->bus_id);
    return true;
}

static const char *word_of(const struct setting *setting)
{
    return setting->numbers[0] ? "Enabled" : "Disabled";
}

static nvmlReturn_t set_persistence(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlEnableState_t now = NVML_FEATURE_DISABLED, asked = (nvmlEnableState_t)setting->numbers[0];
    nvmlReturn_t result = ASK(DeviceGetPersistenceMode, gpu->device, &now);

    if (is_already(file, gpu, result, now, asked, "Persistence mode", word_of(setting)))
        return NVML_SUCCESS;
    result = ASK(DeviceSetPersistenceMode, gpu->device, asked);
    if (result == NVML_SUCCESS)
        fprintf(file, "%s persistence mode for GPU %s.\n", word_of(setting), gpu->bus_id);
    return result;
}

static nvmlReturn_t set_ecc(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlEnableState_t now, next = NVML_FEATURE_DISABLED,
                           asked = (nvmlEnableState_t)setting->numbers[0];
    nvmlReturn_t result = ASK(DeviceGetEccMode, gpu->device, &now, &next);

    if (is_already(file, gpu, result, next, asked, "ECC support", word_of(setting)))
        return NVML_SUCCESS;
    result = ASK(DeviceSetEccMode, gpu->device, asked);
    if (result == NVML_SUCCESS)
        fprintf(file, "%s ECC support for GPU %s.\n", word_of(setting), gpu->bus_id);
    return result == NVML_SUCCESS ? NVML_ERROR_RESET_REQUIRED : result;
}

static nvmlReturn_t clear_errors(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlReturn_t result = ASK(DeviceClearEccErrorCounts, gpu->device,
                              setting->numbers[0] ? NVML_AGGREGATE_ECC : NVML_VOLATILE_ECC);

    if (result == NVML_SUCCESS)
        fprintf(file, "Reset %s ECC errors to zero for GPU %s.\n",
                setting->numbers[0] ? "aggregate" : "volatile", gpu->bus_id);
    return result;
}

static nvmlReturn_t set_compute_mode(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlComputeMode_t now = NVML_COMPUTEMODE_DEFAULT,
                      asked = (nvmlComputeMode_t)setting->numbers[0];
    nvmlReturn_t result = ASK(DeviceGetComputeMode, gpu->device, &now);

    if (result == NVML_SUCCESS && now == asked) {
        fprintf(file, "Compute mode is already set to %s for GPU %s.\n", compute_modes[asked],
                gpu->bus_id);
        return result;
    }
    result = ASK(DeviceSetComputeMode, gpu->device, asked);
    if (result == NVML_SUCCESS)
        fprintf(file, "Set compute mode to %s for GPU %s.\n", compute_modes[asked], gpu->bus_id);
    return result;
}

static nvmlReturn_t set_operation_mode(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlReturn_t result = ASK(DeviceSetGpuOperationMode, gpu->device,
                              (nvmlGpuOperationMode_t)setting->numbers[0]);

    if (result == NVML_SUCCESS)
        fprintf(file, "Set GPU operation mode for GPU %s.\n", gpu->bus_id);
    return result == NVML_SUCCESS ? NVML_ERROR_RESET_REQUIRED : result;
}

static nvmlReturn_t lock_gpu_clocks(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    unsigned int low = (unsigned int)setting->numbers[0], high = (unsigned int)setting->numbers[1];
    nvmlReturn_t result = ASK(DeviceSetGpuLockedClocks, gpu->device, low, high);
    char texts[2][16];

    if (result == NVML_SUCCESS)
        fprintf(file, "GPU clocks set to \"(gpuClkMin %s, gpuClkMax %s)\" for GPU %s\n",
                mhz_text(low, texts[0]), mhz_text(high, texts[1]), gpu->bus_id);
    return result;
}

static nvmlReturn_t reset_gpu_clocks(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    (void)file;
    (void)setting;
    return ASK(DeviceResetGpuLockedClocks, gpu->device);
}

static nvmlReturn_t lock_memory_clocks(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    unsigned int low = (unsigned int)setting->numbers[0], high = (unsigned int)setting->numbers[1];
    nvmlReturn_t result = ASK(DeviceSetMemoryLockedClocks, gpu->device, low, high);
    char texts[2][16];

    if (result == NVML_SUCCESS)
        fprintf(file, "Memory clocks set to \"(memClkMin %s, memClkMax %s)\" for GPU %s\n",
                mhz_text(low, texts[0]), mhz_text(high, texts[1]), gpu->bus_id);
    return result;
}

static nvmlReturn_t reset_memory_clocks(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    (void)file;
    (void)setting;
    return ASK(DeviceResetMemoryLockedClocks, gpu->device);
}

static nvmlReturn_t set_applications_clocks(FILE *file, struct gpu *gpu,
                                            const struct setting *setting)
{
    unsigned int memory = (unsigned int)setting->numbers[0],
                 graphics = (unsigned int)setting->numbers[1];
    nvmlReturn_t result = ASK(DeviceSetApplicationsClocks, gpu->device, memory, graphics);

    if (result == NVML_SUCCESS)
        fprintf(file, "Applications clocks set to \"(MEM %u, SM %u)\" for GPU %s\n", memory,
                graphics, gpu->bus_id);
    if (result == NVML_ERROR_INVALID_ARGUMENT)
        fprintf(file,
                "Specified clock combination \"(MEM %u, SM %u)\" is not supported for GPU %s. Run "
                "'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock combinations\n"
                "%s",
                memory, graphics, gpu->bus_id, warning_only);
    return result == NVML_ERROR_INVALID_ARGUMENT ? NVML_SUCCESS : result;
}

static nvmlReturn_t reset_applications_clocks(FILE *file, struct gpu *gpu,
                                              const struct setting *setting)
{
    (void)file;
    (void)setting;
    return ASK(DeviceResetApplicationsClocks, gpu->device);
}

static nvmlReturn_t set_power_limit(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    double asked = setting->watts * 1000 + 0.5;
    unsigned int mw = asked < UINT_MAX ? (unsigned int)asked : UINT_MAX, min = 0, max = 0, now = 0;
    nvmlReturn_t result = ASK(DeviceGetPowerManagementLimitConstraints, gpu->device, &min, &max);

    if (result == NVML_SUCCESS && (mw < min || mw > max)) {
        fprintf(file,
                "Provided power limit %.2f W is not a valid power limit which should be between "
                "%.2f W and %.2f W for GPU %s\n",
                setting->watts, min / 1e3, max / 1e3, gpu->bus_id);
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    ASK(DeviceGetPowerManagementLimit, gpu->device, &now);
    result = ASK(DeviceSetPowerManagementLimit, gpu->device, mw);
    if (result == NVML_SUCCESS)
        fprintf(file, "Power limit for GPU %s was set to %.2f W from %.2f W.\n", gpu->bus_id,
                mw / 1e3, now / 1e3);
    return result;
}

static nvmlReturn_t set_accounting(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlEnableState_t now = NVML_FEATURE_DISABLED, asked = (nvmlEnableState_t)setting->numbers[0];
    nvmlReturn_t result = ASK(DeviceGetAccountingMode, gpu->device, &now);

    if (is_already(file, gpu, result, now, asked, "Accounting mode", word_of(setting)))
        return NVML_SUCCESS;
    result = ASK(DeviceSetAccountingMode, gpu->device, asked);
    if (result == NVML_SUCCESS)
        fprintf(file, "%s Accounting Mode for GPU %s.\n", word_of(setting), gpu->bus_id);
    return result;
}

static nvmlReturn_t clear_accounted(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlReturn_t result = ASK(DeviceClearAccountingPids, gpu->device);

    (void)setting;
    if (result == NVML_SUCCESS)
        fprintf(file, "Cleared Accounted PIDs for GPU %s.\n", gpu->bus_id);
    return result;
}

static nvmlReturn_t set_mig(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlReturn_t activation = NVML_SUCCESS;
    nvmlReturn_t result = ASK(DeviceSetMigMode, gpu->device, (unsigned int)setting->numbers[0],
                              &activation);

    if (result == NVML_SUCCESS && activation != NVML_SUCCESS)
        fprintf(
            file,
            "Warning: MIG mode is in pending %s state for GPU %s:%s\n%s is currently being used "
            "by one or more other processes (e.g. CUDA application or a monitoring application "
            "such as another instance of nvidia-smi). Please first kill all processes using the "
            "device and retry the command or reboot the system to make MIG mode effective.\n",
            setting->numbers[0] ? "enable" : "disable", gpu->bus_id, api_error(activation),
            gpu->bus_id);
    else if (result == NVML_SUCCESS)
        fprintf(file, "%s MIG Mode for GPU %s\n", word_of(setting), gpu->bus_id);
    else
        fprintf(file, "Unable to %s MIG Mode for GPU %s: %s\n",
                setting->numbers[0] ? "enable" : "disable", gpu->bus_id, api_error(result));
    return result;
}

static nvmlReturn_t set_auto_boost(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    nvmlReturn_t result = ASK(DeviceSetDefaultAutoBoostedClocksEnabled, gpu->device,
                              (nvmlEnableState_t)setting->numbers[0], 0);

    if (result == NVML_SUCCESS)
        fprintf(file, "%s default auto boosted clocks for GPU %s.\n", word_of(setting),
                gpu->bus_id);
    return result;
}

static nvmlReturn_t set_boost_permission(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    enum { API_SET_AUTO_BOOSTED_CLOCKS = 1 };
    nvmlReturn_t result = ASK(DeviceSetAPIRestriction, gpu->device, API_SET_AUTO_BOOSTED_CLOCKS,
                              (nvmlEnableState_t)setting->numbers[0]);

    if (result == NVML_SUCCESS)
        fprintf(file, "Set auto boosted clocks permission to %s for GPU %s.\n",
                setting->numbers[0] ? "RESTRICTED" : "UNRESTRICTED", gpu->bus_id);
    return result;
}

static nvmlReturn_t set_target(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    int celsius = (int)setting->numbers[0];
    nvmlReturn_t result = ASK(DeviceSetTemperatureThreshold, gpu->device,
                              NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR, &celsius);

    if (result == NVML_SUCCESS)
        fprintf(file, "GPU target temperature for GPU %s was set to %d C.\n", gpu->bus_id, celsius);
    return result;
}

/*
 * The public interface has no reset. Taking the GPU away from the driver and giving it back has the same
 * effect: what was volatile is gone, what was pending is done.
 */
static nvmlReturn_t reset_gpu(FILE *file, struct gpu *gpu, const struct setting *setting)
{
    enum { KEEP_GPU = 0, LINK_KEEP = 0 };
    nvmlPciInfo_t pci = { 0 };
    nvmlReturn_t result = ASK(DeviceGetPciInfo_v3, gpu->device, &pci);

    (void)setting;
    if (result == NVML_SUCCESS)
        result = ASK(DeviceRemoveGpu_v2, &pci, KEEP_GPU, LINK_KEEP);
    if (result == NVML_SUCCESS)
        result = ASK(DeviceDiscoverGpus, &pci);
    if (result == NVML_SUCCESS)
        fprintf(file, "GPU %s was successfully reset.\n", gpu->bus_id);
    return result;
}

#define CHANGING(what) "Changing " what " is not supported for GPU: %s.\n", NULL
#define CLOCKS(what)                                   \
    "Setting " what " is not supported for GPU %s.\n", \
        "The current user does not have permission to change clocks for GPU %s.\n"

/* clang-format off */
static const struct change_kind kinds[] = {
    { "-pm", "--persistence-mode", "persistence mode", parse_switch, "0/DISABLED or 1/ENABLED", set_persistence,
      CHANGING("persistence mode"), 0,
      "Keep the driver loaded" },
    { "-e", "--ecc-config", "ECC mode", parse_switch, "0/DISABLED or 1/ENABLED", set_ecc, CHANGING("ECC mode"), 0,
      "Correct memory errors" },
    { "-p", "--reset-ecc-errors", "ECC errors", parse_counters, "0/VOLATILE or 1/AGGREGATE", clear_errors,
      CHANGING("ECC errors"), 0,
      "Count memory errors from 0 again" },
    { "-c", "--compute-mode", "compute mode", parse_compute_mode,
      "0/DEFAULT, 1/EXCLUSIVE_THREAD, 2/PROHIBITED or 3/EXCLUSIVE_PROCESS", set_compute_mode,
      CHANGING("compute mode"), 0,
      "Who may compute" },
    { NULL, "--gom", "GPU operation mode", parse_operation_mode, "0/ALL_ON, 1/COMPUTE or 2/LOW_DP", set_operation_mode,
      CHANGING("GPU operation mode"), 0,
      "What is switched on" },
    { "-lgc", "--lock-gpu-clocks", "locked GPU clocks", parse_range, "<minGpuClock,maxGpuClock> or one clock in MHz", lock_gpu_clocks,
      CLOCKS("locked GPU clocks"), NEEDS_PERSISTENCE,
      "Lock the GPU's clock" },
    { "-rgc", "--reset-gpu-clocks", "locked GPU clocks", NULL, NULL, reset_gpu_clocks,
      CLOCKS("locked GPU clocks"), 0,
      "No longer." },
    { "-lmc", "--lock-memory-clocks", "locked memory clocks", parse_range, "<minMemClock,maxMemClock> or one clock in MHz",
      lock_memory_clocks, CLOCKS("locked Memory clocks"), NEEDS_PERSISTENCE,
      "Lock the memory's clock" },
    { "-rmc", "--reset-memory-clocks", "locked memory clocks", NULL, NULL, reset_memory_clocks,
      CLOCKS("locked Memory clocks"), 0,
      "No longer." },
    { "-ac", "--applications-clocks", "applications clocks", parse_clocks, "<memory,graphics> in MHz",
      set_applications_clocks, CLOCKS("applications clocks"), NEEDS_PERSISTENCE,
      "The clocks of running programs" },
    { "-rac", "--reset-applications-clocks", "applications clocks", NULL, NULL, reset_applications_clocks,
      CLOCKS("applications clocks"), 0,
      "The default ones again." },
    { "-pl", "--power-limit", "power management limit", parse_watts, "a number of watts", set_power_limit,
      "Changing power management limit is not supported in current scope for GPU: %s.\n",
      "Failed to set power management limit for GPU %s: Insufficient Permissions\n", NEEDS_PERSISTENCE | TELLS_INVALID | UNWARNED,
      "The power limit" },
    { "-am", "--accounting-mode", "accounting mode", parse_switch, "0/DISABLED or 1/ENABLED", set_accounting,
      CHANGING("accounting mode"), 0,
      "Keep statistics of processes" },
    { "-caa", "--clear-accounted-apps", "accounted processes", NULL, NULL, clear_accounted,
      CHANGING("accounted processes"), 0,
      "Forget them." },
    { NULL, "--auto-boost-default", "default auto boosted clocks", parse_switch, "0/DISABLED or 1/ENABLED",
      set_auto_boost, "Enabling/disabling default auto boosted clocks is not supported for GPU: %s.\n", NULL, 0,
      "Let clocks rise by themselves" },
    { NULL, "--auto-boost-permission", "auto boosted clocks permission", parse_permission,
      "0/UNRESTRICTED or 1/RESTRICTED", set_boost_permission, CHANGING("auto boosted clocks permission"), 0,
      "Who may switch that" },
    { "-gtt", "--gpu-target-temp", "GPU target temperature", parse_celsius, "degrees Celsius", set_target,
      "Setting GPU target temperature is not supported for GPU %s.\n", NULL, 0, "How hot it should get" },
    { "-mig", "--multi-instance-gpu", "MIG mode", parse_switch, "0/DISABLED or 1/ENABLED", set_mig,
      "", NULL, NEEDS_PERSISTENCE | TELLS_FAILURE,
      "Divide the GPU" },
    { "-r", "--gpu-reset", "GPU reset", NULL, NULL, reset_gpu, "Resetting GPU %s is not supported.\n",
      "Unable to reset GPU %s: Insufficient Permissions\n", 0,
      "Reset the GPU." },
};
/* clang-format on */

const struct change_kind *change_find(const char *option)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if ((kinds[i].letter && !strcmp(kinds[i].letter, option)) || !strcmp(kinds[i].name, option))
            return &kinds[i];
    return NULL;
}

void changes_help(FILE *file)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct change_kind *kind = &kinds[i];
        char help[192];

        snprintf(help, sizeof(help), "%s%s%s", kind->help, kind->allowed ? ": " : "",
                 kind->allowed ? kind->allowed : "");
        help_line(file, kind->letter, kind->name, kind->parse != NULL, help);
    }
}

bool change_takes_argument(const struct change_kind *kind)
{
    return kind->parse != NULL;
}

/* --- all of them -------------------------------------------------------------------------------- */

/* What is told when all of it is done. */
struct outcome {
    int status;
    bool reboot;       /* something takes effect after one */
    unsigned int busy; /* GPUs that could not be reset */
};

/* Settings that would be lost when nobody uses the GPU any more. */
static void warn_of_persistence(FILE *file, struct gpu *gpu)
{
    nvmlEnableState_t mode = NVML_FEATURE_ENABLED;

    if (ASK(DeviceGetPersistenceMode, gpu->device, &mode) == NVML_SUCCESS &&
        mode == NVML_FEATURE_DISABLED)
        fprintf(
            file,
            "\nWarning: persistence mode is disabled on device %s. See the Known Issues section of "
            "the nvidia-smi(1) man page for more information. Run with [--help | -h] switch to get "
            "more information on how to enable persistence mode.\n",
            gpu->bus_id);
}

static void say_failed(FILE *file, const struct change_kind *kind, struct gpu *gpu,
                       nvmlReturn_t result)
{
    if (kind->traits & TELLS_FAILURE)
        return;
    if (result == NVML_ERROR_NO_PERMISSION && kind->refused)
        fprintf(file, kind->refused, gpu->bus_id);
    else
        fprintf(file, "Unable to set %s for GPU %s: %s\n", kind->what, gpu->bus_id,
                api_error(result));
}

/* What a change says after the sentence of its own, if it has one. */
static void report(FILE *file, const struct change_kind *kind, struct gpu *gpu, nvmlReturn_t result,
                   bool error_on_warning, struct outcome *outcome)
{
    bool is_reset = kind->apply == reset_gpu;

    switch (result) {
    case NVML_ERROR_RESET_REQUIRED:
        outcome->reboot = true;
        return;
    case NVML_SUCCESS:
        if (kind->traits & NEEDS_PERSISTENCE)
            warn_of_persistence(file, gpu);
        return;
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        fprintf(file, kind->unsupported, gpu->bus_id);
        if (is_reset || error_on_warning)
            outcome->status = exit_status(NVML_ERROR_NOT_SUPPORTED);
        else if (!(kind->traits & UNWARNED))
            fputs(warning_only, file);
        return;
    case NVML_ERROR_DEPRECATED:
        fprintf(file, "%s.\n", api_error(result));
        return;
    case NVML_ERROR_IN_USE:
        if (is_reset) {
            fprintf(file, "%s  GPU %s: %s\n",
                    outcome->busy++ ? "" : "\nThe following GPUs could not be reset:\n",
                    gpu->bus_id, api_error(result));
            return;
        }
        say_failed(file, kind, gpu, result);
        break;
    case NVML_ERROR_INVALID_ARGUMENT: /* was told */
        break;
    default:
        say_failed(file, kind, gpu, result);
    }
    outcome->status = exit_status(result);
}

/* The last words, and the exit status. */
static int conclude(FILE *file, const struct outcome *outcome)
{
    if (outcome->busy && outcome->status == 0) {
        bool one = outcome->busy == 1;

        fprintf(file,
                "\n%u device%s currently being used by one or more other processes (e.g., Fabric "
                "Manager, CUDA application, graphics application such as an X server, or a "
                "monitoring application such as another instance of nvidia-smi). Please first kill "
                "all processes using %s and all compute applications running in the system.\n",
                outcome->busy, one ? " is" : "s are", one ? "this device" : "these devices");
        return EXIT_OTHER;
    }
    fprintf(file, outcome->status ? "Terminating early due to previous errors.\n" : "All done.\n");
    if (outcome->reboot)
        fprintf(file, "Reboot required.\n");
    return outcome->status;
}

static int check_arguments(const struct options *options, struct setting *settings)
{
    for (int i = 0; i < options->change_count; i++) {
        const struct change *change = &options->changes[i];

        if (change->kind->parse && !change->kind->parse(change->argument, &settings[i]))
            return complain("Provided %s \"%s\" is not valid: it should be %s.\n",
                            change->kind->what, change->argument, change->kind->allowed);
    }
    return 0;
}

int changes_apply(FILE *file, struct gpus *gpus, const struct options *options)
{
    struct setting settings[CHANGES_MAX];
    struct outcome outcome = { 0 };
    int status = check_arguments(options, settings);

    if (status != 0)
        return status;
    for (int i = 0; outcome.status == 0 && i < options->change_count; i++) {
        const struct change_kind *kind = options->changes[i].kind;

        for (unsigned int g = 0; outcome.status == 0 && g < gpus->count; g++) {
            struct gpu *gpu = &gpus->items[g];
            nvmlReturn_t result = kind->apply(file, gpu, &settings[i]);

            if (result == NVML_ERROR_INVALID_ARGUMENT && !(kind->traits & TELLS_INVALID))
                fprintf(file, "Provided %s \"%s\" is not valid for GPU %s\n", kind->what,
                        options->changes[i].argument, gpu->bus_id);
            report(file, kind, gpu, result, options->error_on_warning, &outcome);
        }
    }
    return conclude(file, &outcome);
}
