/*
 * Summary: the table that nvidia-smi prints when nothing else is asked for, and -L.
 *
 * The frame is 91 columns wide, whatever is in it: names that do not fit lose their end, paths of programs
 * their beginning, before they fill their column.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>
#include <time.h>

#include "mocknvml/smi/mig.h"
#include "mocknvml/smi/processes.h"
#include "mocknvml/smi/smi.h"
#include "mocknvml/smi/text.h"

#define BAR \
    "+-----------------------------------------------------------------------------------------+\n"
#define GPU_BAR \
    "+-----------------------------------------+------------------------+----------------------+\n"
#define MIG_BAR \
    "+------------------+----------------------------------+-----------+-----------------------+\n"

enum { CELL = 24, NAME_WIDTH = 27, PATH_WIDTH = 37, PATH_MAX_SHOWN = 32 };

/* A cell's text when there is no value. */
static const char *missing(nvmlReturn_t result)
{
    return result == NVML_ERROR_NOT_SUPPORTED || result == NVML_ERROR_FUNCTION_NOT_FOUND ? "N/A"
                                                                                         : "ERR!";
}

/* A value with what follows it directly, or what stands for it. */
static void cell(char *text, struct gpu *gpu, getter *get, int argument, const char *after)
{
    char value[TEXT_BYTES] = "";
    nvmlReturn_t result = get(gpu, argument, value);

    if (result == NVML_SUCCESS)
        snprintf(text, CELL, "%.16s%s", value, after);
    else
        snprintf(text, CELL, "%s", missing(result));
}

/* Whole watts: of "69.85" the 69. */
static void watts(char *text, struct gpu *gpu, nvmlReturn_t (*ask)(nvmlDevice_t, unsigned int *))
{
    unsigned int mw = 0;
    nvmlReturn_t result = ask ? ask(gpu->device, &mw) : NVML_ERROR_FUNCTION_NOT_FOUND;

    if (result == NVML_SUCCESS)
        snprintf(text, CELL, "%uW", mw / 1000);
    else
        snprintf(text, CELL, "%s", missing(result));
}

static void on_off(char *text, struct gpu *gpu, int which)
{
    char state[TEXT_BYTES] = "";
    nvmlReturn_t result = get_state(gpu, which, state);

    snprintf(text, CELL, "%s",
             result == NVML_SUCCESS ? (strcmp(state, "Enabled") ? "Off" : "On") : missing(result));
}

static void cut_end(char *name)
{
    if (strlen(name) > NAME_WIDTH)
        strcpy(name + NAME_WIDTH - 3, "...");
}

/* --- head --------------------------------------------------------------------------------------- */

static void cuda_version(char *text, size_t size)
{
    int version = 0;
    nvmlReturn_t result = ASK(SystemGetCudaDriverVersion_v2, &version);

    if (result == NVML_SUCCESS)
        snprintf(text, size, "%d.%d", version / 1000, version % 1000 / 10);
    else
        snprintf(text, size, "%s", missing(result));
}

static void print_head(FILE *file)
{
    char driver[TEXT_BYTES] = "N/A", cuda[16];
    time_t now = time(NULL);
    char stamp[64];
    struct tm local;

    get_node(NULL, NODE_DRIVER, driver);
    cuda_version(cuda, sizeof(cuda));
    strftime(stamp, sizeof(stamp), "%a %b %e %H:%M:%S %Y", localtime_r(&now, &local));
    fprintf(
        file,
        "%s       \n" BAR
        "| NVIDIA-SMI %-23.22sDriver Version: %-15.14sCUDA Version: %-8.8s |\n" GPU_BAR
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
        "|                                         |                        |               MIG M. |\n"
        "|=========================================+========================+======================|\n",
        stamp, driver, driver, cuda);
}

int version_print(FILE *file)
{
    char driver[TEXT_BYTES] = "N/A", nvml[80] = "N/A", cuda[16], *dot;

    get_node(NULL, NODE_DRIVER, driver);
    ASK(SystemGetNVMLVersion, nvml, sizeof(nvml));
    /* The library's version begins with that of the interface: 13.590.48.01 is 590.48. */
    dot = strchr(nvml, '.');
    if (dot && strchr(dot + 1, '.')) {
        memmove(nvml, dot + 1, strlen(dot));
        dot = strchr(nvml, '.');
        if (dot && (dot = strchr(dot + 1, '.')))
            *dot = '\0';
    }
    cuda_version(cuda, sizeof(cuda));
    fprintf(file,
            "NVIDIA-SMI version  : %s\nNVML version        : %s\nDRIVER version      : %s\n"
            "CUDA Version        : %s\n",
            driver, nvml, driver, cuda);
    return 0;
}

/* --- GPUs --------------------------------------------------------------------------------------- */

static void ecc_cell(char *text, struct gpu *gpu)
{
    if (gpu_is_mig(gpu))
        snprintf(text, CELL, "On");
    else
        cell(text, gpu, get_errors_total, ERRORS_UNCORRECTED | ERRORS_VOLATILE, "");
}

static void compute_cell(char *text, struct gpu *gpu)
{
    static const char *const modes[] = { "Default", "E. Thread", "Prohibited", "E. Process" };
    nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
    nvmlReturn_t result = ASK(DeviceGetComputeMode, gpu->device, &mode);

    snprintf(text, CELL, "%s",
             result == NVML_SUCCESS && mode < NVML_COMPUTEMODE_COUNT ? modes[mode]
                                                                     : missing(result));
}

static void print_gpu(FILE *file, struct gpu *gpu)
{
    char name[TEXT_BYTES] = "ERR!", persistence[CELL], display[CELL], ecc[CELL];
    char fan[CELL], temperature[CELL], pstate[CELL], power[CELL], limit[CELL];
    char used[CELL], total[CELL], busy[CELL], compute[CELL], mig[CELL];

    get_text(gpu, TEXT_OF(DeviceGetName), name);
    cut_end(name);
    on_off(persistence, gpu, STATE_PERSISTENCE);
    on_off(display, gpu, STATE_DISPLAY_ACTIVE);
    ecc_cell(ecc, gpu);
    cell(fan, gpu, get_uint, UINT_OF(DeviceGetFanSpeed), "%");
    cell(temperature, gpu, get_temperature, 0, "C");
    cell(pstate, gpu, get_pstate, 0, "");
    watts(power, gpu, api.DeviceGetPowerUsage);
    watts(limit, gpu, api.DeviceGetEnforcedPowerLimit);
    cell(used, gpu, get_memory, MEMORY_USED, "MiB");
    cell(total, gpu, get_memory, MEMORY_TOTAL, "MiB");
    cell(busy, gpu, get_engine, ENGINE_GPU, "%");
    compute_cell(compute, gpu);
    cell(mig, gpu, get_state, STATE_MIG, "");
    fprintf(file, "| %3u  %-27s%*s%-3s |   %16s%4s | %20s |\n", gpu->index, name,
            strlen(persistence) > 3 ? 3 : 4, "", persistence, gpu->bus_id, display, ecc);
    fprintf(file, "|%4s%6s%6s%16s /%6s |%11s /%10s |%8s%13s |\n", fan, temperature, pstate, power,
            limit, used, total, busy, compute);
    fprintf(file, "|%41s|%24s|%21s |\n" GPU_BAR, "", "", mig);
}

/* --- MIG devices -------------------------------------------------------------------------------- */

/* Sizes are below each other; one that is too long for that takes of the blanks behind it. */
static void put_usage(FILE *file, nvmlReturn_t result, unsigned long long used_bytes,
                      unsigned long long total_bytes)
{
    enum { BLANKS_END = 12 };
    char used[CELL], total[CELL];
    int length;

    snprintf(used, sizeof(used), "%lluMiB", used_bytes >> 20);
    snprintf(total, sizeof(total), "%lluMiB", total_bytes >> 20);
    fprintf(file, "%19s / ", result == NVML_SUCCESS ? used : missing(result));
    length = fprintf(file, "%8s", result == NVML_SUCCESS ? total : missing(result));
    fprintf(file, "%*s", length < BLANKS_END ? BLANKS_END - length : 0, "");
}

static void print_mig(FILE *file, const struct gpu *gpu, const struct mig_device *mig)
{
    char errors[CELL];
    const nvmlDeviceAttributes_t *has = &mig->has;

    snprintf(errors, sizeof(errors), "%llu", mig->sram_errors);
    fprintf(file, "| %2u  %3u %3u %3u  |", gpu->index, mig->gi, mig->ci, mig->index);
    put_usage(file, mig->memory_result, mig->memory.used, mig->memory.total);
    fprintf(file, "|%3u %6s |%3u %3u  %3u  %3u  %3u |\n|%18s|", has->multiprocessorCount,
            mig->errors_result == NVML_SUCCESS ? errors : missing(mig->errors_result),
            has->sharedCopyEngineCount, has->sharedEncoderCount, has->sharedDecoderCount,
            has->sharedOfaCount, has->sharedJpegCount, "");
    put_usage(file, mig->bar1_result, mig->bar1.bar1Used, mig->bar1.bar1Total);
    fprintf(file, "|%11s|%23s|\n" MIG_BAR, "", "");
}

static bool any_mig(struct gpus *gpus)
{
    for (unsigned int i = 0; i < gpus->count; i++)
        if (gpu_is_mig(&gpus->items[i]))
            return true;
    return false;
}

static void print_migs(FILE *file, struct gpus *gpus)
{
    bool found = false;

    if (!any_mig(gpus))
        return;
    fprintf(
        file,
        "\n" BAR
        "| MIG devices:                                                                            |\n" MIG_BAR
        "| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |\n"
        "|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |\n"
        "|                  |                                  |        ECC|                       |\n"
        "|==================+==================================+===========+=======================|\n");
    for (unsigned int i = 0; i < gpus->count; i++) {
        struct mig_device mig;
        unsigned int index = 0;

        while (mig_next(&gpus->items[i], &index, &mig)) {
            print_mig(file, &gpus->items[i], &mig);
            found = true;
        }
    }
    if (!found)
        fprintf(file, "|  %-87s|\n" BAR, "No MIG devices found");
}

/* --- processes ---------------------------------------------------------------------------------- */

/* Of a long path the end says which program it is. */
static void put_path(FILE *file, const char *path)
{
    static const char dots[] = "...";
    size_t columns = text_columns(path);

    if (columns > PATH_MAX_SHOWN) {
        path = text_after(path, columns - (PATH_MAX_SHOWN - strlen(dots)));
        columns = PATH_MAX_SHOWN;
        fputs(dots, file);
    }
    fprintf(file, "%s%*s", path, (int)(PATH_WIDTH - columns), "");
}

static void print_id(char *text, unsigned int id)
{
    if (id == ~0u)
        snprintf(text, CELL, "N/A");
    else
        snprintf(text, CELL, "%2u ", id);
}

static void print_process(FILE *file, const struct gpu *gpu, const struct process *process)
{
    char name[4096], gi[CELL], ci[CELL], memory[CELL] = "N/A     ";

    print_id(gi, process->gi);
    print_id(ci, process->ci);
    process_name(process->pid, name, sizeof(name));
    if (process->bytes != ~0ull)
        snprintf(memory, sizeof(memory), "%lluMiB", process->bytes >> 20);
    fprintf(file, "|%5u%6s%5s%16u%7s   ", gpu->index, gi, ci, process->pid, process_type(process));
    put_path(file, name);
    fprintf(file, "%9s |\n", memory);
}

static void print_processes(FILE *file, struct gpus *gpus)
{
    bool found = false, supported = false;

    fprintf(
        file,
        "\n" BAR
        "| Processes:                                                                              |\n"
        "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n"
        "|        ID   ID                                                               Usage      |\n"
        "|=========================================================================================|\n");
    for (unsigned int i = 0; i < gpus->count; i++) {
        struct processes list;

        supported |= processes_get(&gpus->items[i], PROCESS_ANY, &list) == NVML_SUCCESS;
        for (unsigned int p = 0; p < list.count; p++)
            print_process(file, &gpus->items[i], &list.items[p]);
        found |= list.count > 0;
        processes_release(&list);
    }
    if (!found)
        fprintf(file, "|  %-87s|\n", supported ? "No running processes found" : "Not Supported");
    fputs(BAR, file);
}

int summary_print(FILE *file, struct gpus *gpus)
{
    print_head(file);
    for (unsigned int i = 0; i < gpus->count; i++)
        print_gpu(file, &gpus->items[i]);
    print_migs(file, gpus);
    print_processes(file, gpus);
    return 0;
}

/* --- -L and -B ---------------------------------------------------------------------------------- */

int list_print(FILE *file, struct gpus *gpus)
{
    for (unsigned int i = 0; i < gpus->count; i++) {
        char name[TEXT_BYTES] = "Unknown Error", uuid[TEXT_BYTES] = "Unknown Error";
        struct gpu *gpu = &gpus->items[i];
        struct mig_device mig;
        unsigned int index = 0;

        get_text(gpu, TEXT_OF(DeviceGetName), name);
        get_text(gpu, TEXT_OF(DeviceGetUUID), uuid);
        fprintf(file, "GPU %u: %s (UUID: %s)\n", gpu->index, name, uuid);
        while (mig_next(gpu, &index, &mig))
            fprintf(file, "  MIG %-11s Device %2u: (UUID: %s)\n", mig.name, mig.index, mig.uuid);
    }
    return 0;
}

int excluded_print(FILE *file)
{
    unsigned int count = 0;

    if (ASK(GetExcludedDeviceCount, &count) != NVML_SUCCESS || count == 0) {
        fprintf(file, "No excluded devices found\n");
        return 0;
    }
    for (unsigned int i = 0; i < count; i++) {
        nvmlExcludedDeviceInfo_t info;

        if (ASK(GetExcludedDeviceInfoByIndex, i, &info) == NVML_SUCCESS)
            fprintf(file, "GPU %s (UUID: %s)\n", info.pci.busId, info.uuid);
    }
    return 0;
}
