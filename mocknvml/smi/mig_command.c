/*
 * Mig command: `mig`: lists, creates and destroys GPU instances and compute instances.
 *
 * Everything is listed by profile, from small to large, as the driver's tool does. What changes something stops at
 * the first refusal and leaves what was done.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/instances.h"
#include "mocknvml/smi/smi.h"

struct request {
    const char *ids, *instances, *computes; /* -i, -gi, -ci: NULL for all */
    const char *profiles;                   /* of -cgi and -cci; NULL for the default */
    bool with_compute;                      /* -C */
};

/* --- tables ------------------------------------------------------------------------------------- */

static void bar(int width, char line, char end)
{
    putchar(end);
    for (int i = 0; i < width; i++)
        putchar(line);
    printf("%c\n", end);
}

enum {
    WIDTH_PROFILES = 79,
    WIDTH_INSTANCES = 57,
    WIDTH_COMPUTE_PROFILES = 86,
    WIDTH_COMPUTES = 68
};

static void head(int width, const char *const *lines)
{
    bar(width, '-', '+');
    for (; *lines; lines++)
        printf("| %-*s|\n", width - 1, *lines);
    bar(width, '=', '|');
}

/* --- GPU instances ------------------------------------------------------------------------------ */

static int not_found(const char *what)
{
    printf("No %s found: %s\n", what, api_error(NVML_ERROR_NOT_FOUND));
    return exit_status(NVML_ERROR_NOT_FOUND);
}

/* Those that -gi allows; complains when there are none. */
static int find_instances(struct gpus *gpus, const struct request *request, struct instances *found)
{
    int status = instances_find(gpus, request->instances, found);

    return status || found->count ? status : not_found("GPU instances");
}

/* The lines of each, below a head. */
static int show_instances(struct gpus *gpus, const struct request *request, int width,
                          const char *const *lines, void (*show)(const struct instance *))
{
    struct instances found;
    int status = find_instances(gpus, request, &found);

    if (status == 0)
        head(width, lines);
    for (unsigned int i = 0; i < found.count; i++)
        show(&found.items[i]);
    free(found.items);
    return status;
}

/* Does it for each until one is refused, then says what failed. */
static int for_instances(struct gpus *gpus, const struct request *request,
                         nvmlReturn_t (*act)(const struct instance *, const struct request *),
                         const char *failure)
{
    nvmlReturn_t result = NVML_SUCCESS;
    struct instances found;
    int status = find_instances(gpus, request, &found);

    for (unsigned int i = 0; result == NVML_SUCCESS && i < found.count; i++)
        result = act(&found.items[i], request);
    free(found.items);
    if (result == NVML_SUCCESS)
        return status;
    printf("Failed to %s: %s\n", failure, api_error(result));
    return exit_status(result);
}

/* --- compute instances -------------------------------------------------------------------------- */

/* At the place that begins at `start`; NULL: anywhere. */
static nvmlReturn_t place_compute(const struct instance *one, const compute_profile_t *profile,
                                  const char *start, nvmlComputeInstance_t *handle)
{
    compute_placement_t places[COMPUTES_MAX];
    unsigned int count = start ? compute_places(one, profile, places) : 0;
    long number;

    if (!start)
        return ASK(GpuInstanceCreateComputeInstance, one->handle, profile->id, handle);
    if (!arguments_number(start, 0, 99, &number))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < count; i++)
        if (places[i].start == (unsigned int)number)
            return ASK(GpuInstanceCreateComputeInstanceWithPlacement, one->handle, profile->id,
                       &places[i], handle);
    return NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t create_compute(const struct instance *one, const compute_profile_t *profile,
                                   const char *word, const char *start)
{
    nvmlComputeInstanceInfo_t info = { 0 };
    nvmlComputeInstance_t handle;
    nvmlReturn_t result = profile ? place_compute(one, profile, start, &handle)
                                  : NVML_ERROR_INVALID_ARGUMENT;

    if (result == NVML_SUCCESS)
        result = ASK(ComputeInstanceGetInfo_v2, handle, &info);
    if (result == NVML_SUCCESS)
        printf("Successfully created compute instance ID %2u on GPU %2u GPU instance ID %2u using "
               "profile %s (ID %2u)\n",
               info.id, one->gpu->index, one->info.id, profile->name, profile->id);
    else
        printf(
            "Unable to create a compute instance on GPU %2u GPU instance ID %2u using profile %s: "
            "%s\n",
            one->gpu->index, one->info.id, word, api_error(result));
    return result;
}

/* For each word of -cci, "0", "1c.3g.20gb:1": where it is to begin may follow the profile; or the default. */
static nvmlReturn_t create_computes(const struct instance *one, const struct request *request)
{
    compute_profile_t profiles[COMPUTES_MAX];
    unsigned int count = compute_profiles(one, profiles);
    char *words = strdup(request->profiles ? request->profiles : ""), *rest = words, *word;
    nvmlReturn_t result = words ? NVML_SUCCESS : NVML_ERROR_MEMORY;

    while (result == NVML_SUCCESS && (word = strsep(&rest, ","))) {
        const compute_profile_t *chosen = NULL;
        const char *name = strsep(&word, ":");

        for (unsigned int i = 0; i < count && !chosen; i++)
            if (*name ? profile_is_named(name, profiles[i].id, profiles[i].name)
                      : compute_is_default(one, &profiles[i]))
                chosen = &profiles[i];
        result = create_compute(one, chosen, name, word);
    }
    free(words);
    return result;
}

/* --- commands: GPU instances -------------------------------------------------------------------- */

/* GPUs that are "enabled", or the boards that are "supported". */
static int no_mig(const char *which)
{
    printf("No MIG-%s devices found.\n", which);
    return exit_status(NVML_ERROR_NOT_FOUND);
}

static void show_profile(struct gpu *gpu, const profile_t *p)
{
    unsigned int left = 0;

    ASK(DeviceGetGpuInstanceRemainingCapacity, gpu->device, p->id, &left);
    printf("|%4u  MIG %-14s%4u     %u/%-9u%-5.2f      %-3s    %-7u%-6u%-4u|\n", gpu->index,
           profile_short_name(p->name), p->id, left, p->instanceCount,
           (double)p->memorySizeMB / 1024, p->isP2pSupported ? "Yes" : "No", p->multiprocessorCount,
           p->decoderCount, p->encoderCount);
    printf("|%62s%2u     %-6u%-4u|\n", "", p->copyEngineCount, p->jpegCount, p->ofaCount);
    bar(WIDTH_PROFILES, '-', '+');
}

static int list_profiles(struct gpus *gpus, const struct request *request)
{
    static const char *const lines[] = {
        "GPU instance profiles:",
        "GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC",
        "                               Free/Total   GiB              CE    JPEG  OFA", NULL
    };
    bool any = false;

    (void)request;
    for (unsigned int i = 0; i < gpus->count; i++) {
        profile_t profiles[PROFILES_MAX];
        unsigned int count = instance_profiles(&gpus->items[i], profiles);

        if (count && !any)
            head(WIDTH_PROFILES, lines);
        any |= count > 0;
        for (unsigned int p = 0; p < count; p++)
            show_profile(&gpus->items[i], &profiles[p]);
    }
    return any ? 0 : no_mig("supported");
}

static void show_placements(struct gpu *gpu, const profile_t *p)
{
    placement_t places[INSTANCES_MAX];
    unsigned int count = instance_places(gpu, p, places);

    if (count == 0)
        return;
    printf("GPU %2u Profile ID %2u Placement%s: {", gpu->index, p->id, count > 1 ? "s" : " ");
    for (unsigned int i = 0; i < count; i++)
        printf("%s%u", i ? "," : "", places[i].start);
    printf("}:%u\n", places[0].size);
}

static int list_placements(struct gpus *gpus, const struct request *request)
{
    bool any = false;

    (void)request;
    for (unsigned int i = 0; i < gpus->count; i++) {
        profile_t profiles[PROFILES_MAX];
        unsigned int count = instance_profiles(&gpus->items[i], profiles);

        any |= count > 0;
        for (unsigned int p = 0; p < count; p++)
            show_placements(&gpus->items[i], &profiles[p]);
    }
    return any ? 0 : no_mig("supported");
}

/* At the place that begins at `start`; NULL: anywhere. */
static nvmlReturn_t place_instance(struct gpu *gpu, const profile_t *p, const char *start,
                                   nvmlGpuInstance_t *handle)
{
    placement_t places[INSTANCES_MAX];
    unsigned int count = start ? instance_places(gpu, p, places) : 0;
    long number;

    if (!start)
        return ASK(DeviceCreateGpuInstance, gpu->device, p->id, handle);
    if (!arguments_number(start, 0, 99, &number))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned int i = 0; i < count; i++)
        if (places[i].start == (unsigned int)number)
            return ASK(DeviceCreateGpuInstanceWithPlacement, gpu->device, p->id, &places[i],
                       handle);
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* "19", "1g.5gb:4": where it is to begin may follow the profile. */
static nvmlReturn_t create_instance(struct gpu *gpu, char *word, bool with_compute)
{
    profile_t profiles[PROFILES_MAX];
    unsigned int count = instance_profiles(gpu, profiles), p = 0;
    struct instance one = { .gpu = gpu };
    nvmlReturn_t result = NVML_ERROR_INVALID_ARGUMENT;
    const char *name = strsep(&word, ":");

    while (p < count && !profile_is_named(name, profiles[p].id, profiles[p].name))
        p++;
    if (p < count)
        result = place_instance(gpu, &profiles[p], word, &one.handle);
    if (result == NVML_SUCCESS)
        result = ASK(GpuInstanceGetInfo, one.handle, &one.info);
    if (result != NVML_SUCCESS) {
        printf("Unable to create a GPU instance on GPU %2u using profile %s: %s\n", gpu->index,
               name, api_error(result));
        return result;
    }
    one.profile = profiles[p];
    printf("Successfully created GPU instance ID %2u on GPU %2u using profile %s (ID %2u)\n",
           one.info.id, gpu->index, one.profile.name, one.profile.id);
    return with_compute ? create_computes(&one, &(struct request){ 0 }) : NVML_SUCCESS;
}

static int create_instances(struct gpus *gpus, const struct request *request)
{
    nvmlReturn_t result = NVML_SUCCESS;

    for (unsigned int i = 0; result == NVML_SUCCESS && i < gpus->count; i++) {
        char *words = strdup(request->profiles), *rest = words, *word;

        if (!words)
            result = NVML_ERROR_MEMORY;
        while (result == NVML_SUCCESS && (word = strsep(&rest, ",")))
            result = create_instance(&gpus->items[i], word, request->with_compute);
        free(words);
    }
    if (result != NVML_SUCCESS)
        printf("Failed to create GPU instances: %s\n", api_error(result));
    return exit_status(result);
}

static void show_instance(const struct instance *one)
{
    printf("|%4u  MIG %-14s%6u%9u%11u:%-6u|\n", one->gpu->index,
           profile_short_name(one->profile.name), one->profile.id, one->info.id,
           one->info.placement.start, one->info.placement.size);
    bar(WIDTH_INSTANCES, '-', '+');
}

static int list_instances(struct gpus *gpus, const struct request *request)
{
    static const char *const lines[] = {
        "GPU instances:", "GPU   Name               Profile  Instance   Placement",
        "                           ID       ID       Start:Size", NULL
    };

    return show_instances(gpus, request, WIDTH_INSTANCES, lines, show_instance);
}

static nvmlReturn_t destroy_instance(const struct instance *one, const struct request *request)
{
    nvmlReturn_t result = ASK(GpuInstanceDestroy, one->handle);

    (void)request;
    if (result == NVML_SUCCESS)
        printf("Successfully destroyed GPU instance ID %2u from GPU %2u\n", one->info.id,
               one->gpu->index);
    else
        printf("Unable to destroy GPU instance ID %2u from GPU %2u: %s\n", one->info.id,
               one->gpu->index, api_error(result));
    return result;
}

static int destroy_instances(struct gpus *gpus, const struct request *request)
{
    return for_instances(gpus, request, destroy_instance, "destroy GPU instances");
}

/* --- commands: compute instances ---------------------------------------------------------------- */

static void show_compute_profiles(const struct instance *one)
{
    compute_profile_t profiles[COMPUTES_MAX];
    unsigned int count = compute_profiles(one, profiles);

    for (unsigned int i = 0; i < count; i++) {
        const compute_profile_t *p = &profiles[i];
        unsigned int left = 0;

        ASK(GpuInstanceGetComputeInstanceRemainingCapacity, one->handle, p->id, &left);
        printf("|%4u%7u       MIG %-14s%4u%c     %u/%-12u%-10u%-6u%-6u%-4u|\n", one->gpu->index,
               one->info.id, profile_short_name(p->name), p->id,
               compute_is_default(one, p) ? '*' : ' ', left, p->instanceCount,
               p->multiprocessorCount, p->sharedDecoderCount, p->sharedEncoderCount,
               p->sharedOfaCount);
        printf("|%70s%-6u%-10u|\n", "", p->sharedCopyEngineCount, p->sharedJpegCount);
        bar(WIDTH_COMPUTE_PROFILES, '-', '+');
    }
}

static int list_compute_profiles(struct gpus *gpus, const struct request *request)
{
    static const char *const lines[] = {
        "Compute instance profiles:",
        "GPU     GPU       Name             Profile  Instances   Exclusive       Shared",
        "      Instance                       ID     Free/Total     SM       DEC   ENC   OFA",
        "        ID                                                          CE    JPEG", NULL
    };

    return show_instances(gpus, request, WIDTH_COMPUTE_PROFILES, lines, show_compute_profiles);
}

static void show_compute_placements(const struct instance *one)
{
    compute_profile_t profiles[COMPUTES_MAX];
    unsigned int kinds = compute_profiles(one, profiles);

    for (unsigned int p = 0; p < kinds; p++) {
        compute_placement_t places[COMPUTES_MAX];
        unsigned int count = compute_places(one, &profiles[p], places);

        if (count == 0)
            continue;
        printf("GPU %2u GPU instance ID %2u Profile ID %2u Placement%s: {", one->gpu->index,
               one->info.id, profiles[p].id, count > 1 ? "s" : " ");
        for (unsigned int i = 0; i < count; i++)
            printf("%s%u", i ? "," : "", places[i].start);
        printf("}:%u\n", places[0].size);
    }
}

static int list_compute_placements(struct gpus *gpus, const struct request *request)
{
    struct instances found;
    int status = find_instances(gpus, request, &found);

    for (unsigned int i = 0; i < found.count; i++)
        show_compute_placements(&found.items[i]);
    free(found.items);
    return status;
}

static int create_all_computes(struct gpus *gpus, const struct request *request)
{
    return for_instances(gpus, request, create_computes, "create compute instances");
}

static void show_compute(const struct instance *one, const struct compute *compute)
{
    printf("|%4u%7u       MIG %-14s%4u%10u%11u:%-6u|\n", one->gpu->index, one->info.id,
           profile_short_name(compute->profile.name), compute->profile.id, compute->info.id,
           compute->info.placement.start, compute->info.placement.size);
    bar(WIDTH_COMPUTES, '-', '+');
}

static int list_computes(struct gpus *gpus, const struct request *request)
{
    static const char *const lines[] = {
        "Compute instances:", "GPU     GPU       Name             Profile   Instance   Placement",
        "      Instance                       ID        ID       Start:Size", "        ID", NULL
    };
    struct compute computes[COMPUTES_MAX];
    struct instances found;
    int status = find_instances(gpus, request, &found);
    bool any = false;

    for (unsigned int i = 0; i < found.count; i++) {
        unsigned int count = computes_find(&found.items[i], request->computes, computes);

        if (count && !any)
            head(WIDTH_COMPUTES, lines);
        any |= count > 0;
        for (unsigned int c = 0; c < count; c++)
            show_compute(&found.items[i], &computes[c]);
    }
    free(found.items);
    return status || any ? status : not_found("compute instances");
}

static int destroy_computes(struct gpus *gpus, const struct request *request)
{
    nvmlReturn_t result = NVML_SUCCESS;
    struct compute computes[COMPUTES_MAX];
    struct instances found;
    int status = find_instances(gpus, request, &found);
    bool any = false;

    for (unsigned int i = 0; result == NVML_SUCCESS && i < found.count; i++) {
        const struct instance *one = &found.items[i];
        unsigned int count = computes_find(one, request->computes, computes);

        any |= count > 0;
        for (unsigned int c = 0; result == NVML_SUCCESS && c < count; c++) {
            result = ASK(ComputeInstanceDestroy, computes[c].handle);
            if (result == NVML_SUCCESS)
                printf("Successfully destroyed compute instance ID %2u from GPU %2u GPU instance "
                       "ID %2u\n",
                       computes[c].info.id, one->gpu->index, one->info.id);
            else
                printf("Unable to destroy compute instance ID %2u from GPU %2u GPU instance ID "
                       "%2u: %s\n",
                       computes[c].info.id, one->gpu->index, one->info.id, api_error(result));
        }
    }
    free(found.items);
    if (result != NVML_SUCCESS) {
        printf("Failed to destroy compute instances: %s\n", api_error(result));
        return exit_status(result);
    }
    return status || any ? status : not_found("compute instances");
}

/* --- the command -------------------------------------------------------------------------------- */

typedef int mig_command(struct gpus *gpus, const struct request *request);

/* Profiles are told of every board that has some; everything else is about GPUs in MIG mode. */
static bool needs_mode(mig_command *command)
{
    return command != list_profiles && command != list_placements;
}

static int run(mig_command *command, const struct request *request)
{
    struct gpus gpus = { 0 };
    unsigned int kept = 0;
    int status = gpus_start(&gpus, request->ids);

    if (status != 0)
        return status;
    for (unsigned int i = 0; i < gpus.count; i++)
        if (!needs_mode(command) || gpu_is_mig(&gpus.items[i]))
            gpus.items[kept++] = gpus.items[i];
    gpus.count = kept;
    status = kept ? command(&gpus, request) : no_mig("enabled");
    gpus_close(&gpus);
    return status;
}

int mig(int argc, char **argv)
{
    static mig_command *const commands[] = {
        list_profiles,     list_placements,         create_instances,    list_instances,
        destroy_instances, list_compute_profiles,   create_all_computes, list_computes,
        destroy_computes,  list_compute_placements,
    };
    enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };
    bool asked[COMMANDS] = { false };
    struct request r = { 0 };
    const struct argument arguments[] = {
        { "-lgip", "--list-gpu-instance-profiles", &asked[0], NULL,
          "The profiles of GPU instances, and how many of each there is room for." },
        { "-lgipp", "--list-gpu-instance-possible-placements", &asked[1], NULL,
          "Where each can begin, and its size: {start,…}:size." },
        { "-cgi", "--create-gpu-instance", &asked[2], &r.profiles,
          "Creates GPU instances by names or ids of profiles, with :start after it if it matters." },
        { "-lgi", "--list-gpu-instances", &asked[3], NULL, "The GPU instances that there are." },
        { "-dgi", "--destroy-gpu-instance", &asked[4], NULL, "Destroys GPU instances." },
        { "-lcip", "--list-compute-instance-profiles", &asked[5], NULL,
          "The profiles of compute instances; * marks the default." },
        { "-lcipp", "--list-compute-instance-possible-placements", &asked[9], NULL,
          "Where each can begin, and its size: {start,…}:size." },
        { "-cci", "--create-compute-instance", &asked[6], &r.profiles,
          "Creates compute instances by names or ids of profiles, with :start, or the default." },
        { "-lci", "--list-compute-instances", &asked[7], NULL,
          "The compute instances that there are." },
        { "-dci", "--destroy-compute-instance", &asked[8], NULL, "Destroys compute instances." },
        { "-C", "--default-compute-instance", &r.with_compute, NULL,
          "With -cgi: a compute instance in each." },
        { "-i", "--id", NULL, &r.ids, "Indices, UUIDs or bus ids of GPUs, separated by commas." },
        { "-gi", "--gpu-instance-id", NULL, &r.instances, "Only these GPU instances." },
        { "-ci", "--compute-instance-id", NULL, &r.computes, "Only these compute instances." },
        { 0 },
    };
    int status = arguments_parse(arguments, "mig", argc, argv), count = 0, chosen = 0;

    if (status != 0)
        return status < 0 ? 0 : status;
    for (int i = 0; i < COMMANDS; i++)
        if (asked[i]) {
            chosen = i;
            count++;
        }
    if (count != 1 || (r.with_compute && commands[chosen] != create_instances))
        return complain(
            "mig takes one of -lgip, -lgipp, -cgi, -lgi, -dgi, -lcip, -lcipp, -cci, "
            "-lci and -dci, and -C with -cgi. Please run 'nvidia-smi mig -h' for help.");
    if (commands[chosen] == create_instances && !r.profiles)
        return complain(
            "Missing value for -cgi. Please run 'nvidia-smi mig -lgip' for the profiles.");
    return run(commands[chosen], &r);
}
