/*
 * The mock NVML in processes that live: threads, forks in the middle of everything, a daemon that goes and comes back,
 * GPUs that are removed, and who may see which of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdatomic.h>

#include "mocknvml/hold.h"
#include "mocknvml/lost.h"
#include "tests/nvml_library.h"

/* --- forks ----------------------------------------------------------------------------------- */

static atomic_bool stop;

/* Keeps every lock of the library busy. */
static void *be_busy(void *argument)
{
    unsigned int kind = (unsigned int)(uintptr_t)argument, mw;
    nvmlEventSet_t set;
    nvmlEventData_t data;
    nvmlGpmSample_t sample;
    char text[96];

    while (!atomic_load(&stop))
        switch (kind % 3) {
        case 0:
            CALL(nvmlDeviceGetPowerUsage)(nvml_gpu(kind % 2), &mw);
            CALL(nvmlDeviceGetName)(nvml_gpu(1), text, sizeof(text));
            break;
        case 1:
            if (CALL(nvmlEventSetCreate)(&set) != NVML_SUCCESS)
                break;
            CALL(nvmlDeviceRegisterEvents)(nvml_gpu(1), nvmlEventTypeXidCriticalError, set);
            CALL(nvmlEventSetWait_v2)(set, &data, 1);
            CALL(nvmlEventSetFree)(set);
            break;
        case 2: /* another init and the last but one shutdown change the state */
            CALL(nvmlInit_v2)();
            CALL(nvmlShutdown)();
            CALL(nvmlGpmSampleAlloc)(&sample);
            CALL(nvmlGpmSampleFree)(sample);
            break;
        }
    return NULL;
}

/* What a child does with what it inherited: 0 when all of it works. */
static int use_everything(nvmlEventSet_t inherited)
{
    unsigned int mw;
    char text[96];
    nvmlEventSet_t set;
    nvmlEventData_t data;
    nvmlReturn_t waited;

    alarm(60);
    waited = CALL(nvmlEventSetWait_v2)(inherited, &data, 0);
    if (waited != NVML_ERROR_TIMEOUT && waited != NVML_SUCCESS)
        return 1;
    if (CALL(nvmlDeviceGetPowerUsage)(nvml_gpu(0), &mw) != NVML_SUCCESS ||
        CALL(nvmlDeviceGetName)(nvml_gpu(1), text, sizeof(text)) != NVML_SUCCESS)
        return 2;
    if (CALL(nvmlEventSetCreate)(&set) != NVML_SUCCESS ||
        CALL(nvmlEventSetFree)(set) != NVML_SUCCESS ||
        CALL(nvmlEventSetFree)(inherited) != NVML_SUCCESS)
        return 3;
    return CALL(nvmlInit_v2)() == NVML_SUCCESS && CALL(nvmlShutdown)() == NVML_SUCCESS ? 0 : 4;
}

static void forks(void)
{
    pthread_t threads[6];
    nvmlEventSet_t set;
    int failed = 0;

    CALL(nvmlEventSetCreate)(&set);
    for (uintptr_t i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, be_busy, (void *)i);
    for (int i = 0; i < 60 && !failed; i++) {
        pid_t child = child_start();

        if (child == 0)
            _exit(use_everything(set));
        failed = child_end(child);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    is_int(failed, 0, "children of a busy process use all of the library");
    is_int(CALL(nvmlEventSetFree)(set), NVML_SUCCESS, "and leave their parent alone");
}

/* A child sees an event that came while its parent was waiting, and the parent sees it, too. */
static void both_see_it(void)
{
    nvmlEventSet_t set;
    nvmlEventData_t data;
    pid_t child;

    CALL(nvmlEventSetCreate)(&set);
    CALL(nvmlDeviceRegisterEvents)(nvml_gpu(1), nvmlEventTypeXidCriticalError, set);
    child = child_start();
    if (child == 0)
        _exit(CALL(nvmlEventSetWait_v2)(set, &data, 30000) == NVML_SUCCESS && data.eventData == 31
                  ? 0
                  : 1);
    file_put("gpus/1/control/fault", "xid 31");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 30000), NVML_SUCCESS, "an event for the parent");
    is_int((int64_t)data.eventData, 31, "is that");
    is_int(child_end(child), 0, "and for the child");
    file_put("gpus/1/control/fault", "recover");
    CALL(nvmlEventSetFree)(set);
}

/* --- threads --------------------------------------------------------------------------------- */

static void *read_power(void *failures)
{
    unsigned int mw;

    for (int i = 0; i < 2000; i++)
        if (CALL(nvmlDeviceGetPowerUsage)(nvml_gpu((unsigned)i % 2), &mw) != NVML_SUCCESS)
            atomic_fetch_add((atomic_int *)failures, 1);
    return NULL;
}

/* Two threads wait on one set: each event goes to one of them. */
static void *wait_one(void *set)
{
    nvmlEventData_t data;

    return (void *)(uintptr_t)(CALL(nvmlEventSetWait_v2)(set, &data, 30000) == NVML_SUCCESS
                                   ? data.eventData
                                   : 0);
}

static void threads(void)
{
    pthread_t ids[8];
    atomic_int failures = 0;
    nvmlEventSet_t set;
    void *first, *second;

    for (int i = 0; i < 8; i++)
        pthread_create(&ids[i], NULL, read_power, &failures);
    for (int i = 0; i < 8; i++)
        pthread_join(ids[i], NULL);
    is_int(failures, 0, "eight threads read at once");
    CALL(nvmlEventSetCreate)(&set);
    CALL(nvmlDeviceRegisterEvents)(nvml_gpu(1), nvmlEventTypeXidCriticalError, set);
    for (int i = 0; i < 2; i++)
        pthread_create(&ids[i], NULL, wait_one, set);
    file_put("gpus/1/control/fault", "xid 13");
    file_put("gpus/1/control/fault", "xid 43");
    pthread_join(ids[0], &first);
    pthread_join(ids[1], &second);
    is_int((int64_t)((uintptr_t)first + (uintptr_t)second), 13 + 43, "two threads share a set");
    CALL(nvmlEventSetFree)(set);
    file_put("gpus/1/control/fault", "recover");
}

/* --- GPUs that come and go ------------------------------------------------------------------- */

static nvmlReturn_t wait_system(nvmlSystemEventSet_t set, nvmlSystemEventData_v1_t *data,
                                unsigned int room, unsigned int timeout_ms, unsigned int *count)
{
    nvmlSystemEventSetWaitRequest_v1_t wait = { .version = NVML_STRUCT_VERSION(sizeof(wait), 1),
                                                .timeoutms = timeout_ms,
                                                .set = set,
                                                .data = data,
                                                .dataSize = room };
    nvmlReturn_t result = CALL(nvmlSystemEventSetWait)(&wait);

    *count = wait.numEvent;
    return result;
}

static void removal(void)
{
    nvmlSystemEventSetCreateRequest_v1_t made = { .version = NVML_STRUCT_VERSION(sizeof(made), 1) };
    nvmlSystemEventSetFreeRequest_v1_t gone = { .version = NVML_STRUCT_VERSION(sizeof(gone), 1) };
    nvmlSystemRegisterEventRequest_v1_t asked = { .version = NVML_STRUCT_VERSION(sizeof(asked),
                                                                                 1) };
    nvmlSystemEventData_v1_t data[4];
    nvmlDevice_t gpu = nvml_gpu(1);
    nvmlPciInfo_t pci;
    nvmlEnableState_t draining;
    unsigned int count, mw, board;

    is_int(CALL(nvmlSystemEventSetCreate)(&made), NVML_SUCCESS, "a set of system events");
    asked.set = gone.set = made.set;
    asked.eventTypes = 1ull << 40;
    is_int(CALL(nvmlSystemRegisterEvents)(&asked), NVML_ERROR_NOT_SUPPORTED, "not any events");
    asked.eventTypes = nvmlSystemEventTypeGpuDriverUnbind | nvmlSystemEventTypeGpuDriverBind;
    is_int(CALL(nvmlSystemRegisterEvents)(&asked), NVML_SUCCESS, "GPUs that come and go");
    is_int(wait_system(made.set, data, 4, 0, &count), NVML_ERROR_TIMEOUT, "none does");
    CALL(nvmlDeviceGetPciInfo_v3)(gpu, &pci);
    CALL(nvmlDeviceGetBoardId)(gpu, &board);
    is_int(CALL(nvmlDeviceModifyDrainState)(&pci, NVML_FEATURE_ENABLED), NVML_SUCCESS,
           "a GPU drains");
    is_str(file_text("gpus/1/control/drain"), "1", "in its file");
    CALL(nvmlDeviceQueryDrainState)(&pci, &draining);
    is_int(draining, NVML_FEATURE_ENABLED, "and says so");
    is_int(CALL(nvmlDeviceRemoveGpu_v2)(&pci, 0, 0), NVML_SUCCESS, "it is removed");
    is_int(CALL(nvmlDeviceGetPowerUsage)(gpu, &mw), NVML_ERROR_GPU_IS_LOST, "and gone");
    is_int(wait_system(made.set, data, 4, 30000, &count), NVML_SUCCESS, "which is an event");
    is_int((int64_t)data[0].eventType, nvmlSystemEventTypeGpuDriverUnbind, "of that kind");
    is_int(data[0].gpuId, board, "about that GPU");
    is_int(CALL(nvmlDeviceDiscoverGpus)(&pci), NVML_SUCCESS, "it is found again");
    is_int(CALL(nvmlDeviceGetPowerUsage)(gpu, &mw), NVML_SUCCESS, "and there");
    is_int(wait_system(made.set, data, 4, 30000, &count), NVML_SUCCESS, "which is an event, too");
    is_int((int64_t)data[0].eventType, nvmlSystemEventTypeGpuDriverBind, "of the other kind");
    is_int(CALL(nvmlDeviceModifyDrainState)(&pci, NVML_FEATURE_DISABLED), NVML_SUCCESS,
           "no draining");
    pci.bus = 0xee;
    is_int(CALL(nvmlDeviceQueryDrainState)(&pci, &draining), NVML_ERROR_INVALID_ARGUMENT,
           "there is no GPU everywhere");
    CALL(nvmlSystemEventSetFree)(&gone);
}

/* --- who may see what ------------------------------------------------------------------------ */

/* Initializes anew with that list. How many GPUs are seen. */
static unsigned int see(const char *list)
{
    unsigned int count = 99;

    CALL(nvmlShutdown)();
    setenv("NVIDIA_VISIBLE_DEVICES", list, 1);
    CALL(nvmlInit_v2)();
    CALL(nvmlDeviceGetCount_v2)(&count);
    return count;
}

static int mig_devices(nvmlDevice_t gpu)
{
    nvmlDevice_t mig;
    int count = 0;

    while (CALL(nvmlDeviceGetMigDeviceHandleByIndex)(gpu, (unsigned)count, &mig) == NVML_SUCCESS)
        count++;
    return count;
}

static void visible(void)
{
    char uuids[3][96], whole[96], list[256];
    nvmlDevice_t mig = NULL;
    unsigned int index, gi;

    for (int i = 0; i < 3; i++)
        is_int(file_put("gpus/0/mig/instances", "create 1g.5gb"), 0, "a MIG device");
    for (unsigned int i = 0; i < 3; i++) {
        CALL(nvmlDeviceGetMigDeviceHandleByIndex)(nvml_gpu(0), i, &mig);
        CALL(nvmlDeviceGetUUID)(mig, uuids[i], sizeof(uuids[i]));
    }
    CALL(nvmlDeviceGetGpuInstanceId)(mig, &gi);
    CALL(nvmlDeviceGetUUID)(nvml_gpu(0), whole, sizeof(whole));
    is_int(see("all"), 2, "all GPUs");
    is_int(mig_devices(nvml_gpu(0)), 3, "with all MIG devices");
    is_int(see("void"), 0, "none of them");
    is_int(see("1,0"), 2, "both, by their numbers");
    is_int(see("0:1"), 1, "one MIG device by number");
    is_int(mig_devices(nvml_gpu(0)), 1, "is the only one");
    CALL(nvmlDeviceGetMigDeviceHandleByIndex)(nvml_gpu(0), 0, &mig);
    CALL(nvmlDeviceGetUUID)(mig, list, sizeof(list));
    is_str(list, uuids[1], "and is that");
    CALL(nvmlDeviceGetIndex)(mig, &index);
    is_int(index, 0, "under a new number");
    is_int(CALL(nvmlDeviceGetHandleByUUID)(uuids[1], &mig), NVML_SUCCESS,
           "it is found by its UUID");
    is_int(CALL(nvmlDeviceGetHandleByUUID)(uuids[0], &mig), NVML_ERROR_NOT_FOUND, "others are not");
    snprintf(list, sizeof(list), "%s,%s", uuids[2], uuids[0]);
    is_int(see(list), 1, "MIG devices by UUID");
    is_int(mig_devices(nvml_gpu(0)), 2, "two of them");
    snprintf(list, sizeof(list), "1,MIG-%s/%u/0", whole, gi);
    is_int(see(list), 2, "a GPU, and a MIG device the old way");
    is_int(mig_devices(nvml_gpu(0)), 1, "that one alone");
    snprintf(list, sizeof(list), "0:0,%.12s", whole);
    is_int(see(list), 1, "a GPU and one of its MIG devices");
    is_int(mig_devices(nvml_gpu(0)), 3, "is the whole GPU");
    is_int(see("0:7,MIG-00000000"), 0, "what is not there is not seen");
    CALL(nvmlShutdown)();
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    CALL(nvmlInit_v2)();
}

/* --- the table of numbers -------------------------------------------------------------------- */

static void export_table(void)
{
    static const unsigned char id[16] = { 0x6c, 0x3e, 0xfe, 0xc4, 0x8f, 0xc9, 0x4e, 0x6c,
                                          0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4 };
    static const unsigned char other[16];
    const void *table = NULL;
    void *const *slots;
    nvmlDevice_t gpu = NULL;
    unsigned int answer = 7;

    is_int(CALL(nvmlInternalGetExportTable)(&table, other), NVML_ERROR_NOT_SUPPORTED,
           "no such table");
    is_int(CALL(nvmlInternalGetExportTable)(&table, id), NVML_SUCCESS, "the table that is known");
    slots = table;
    ok(table && (uintptr_t)slots[0] > 0x288 && (uintptr_t)slots[0] >= 231 * sizeof(void *),
       "is large enough");
    is_int(((nvmlReturn_t(*)(unsigned, nvmlDevice_t *, unsigned))slots[81])(1, &gpu, 0x22),
           NVML_SUCCESS, "a handle");
    ok(gpu && gpu == nvml_gpu(1), "is that of the GPU");
    is_int(((nvmlReturn_t(*)(nvmlDevice_t, unsigned *))slots[5])(gpu, &answer), NVML_SUCCESS,
           "what is not known succeeds");
    is_int(answer, 0, "with nothing");
    is_int(((nvmlReturn_t(*)(nvmlDevice_t, unsigned *))slots[230])(gpu, &answer), NVML_SUCCESS,
           "the slot's generation");
    is_int(answer, 4, "is PCIe 4");
    answer = 0;
    is_int(((nvmlReturn_t(*)(nvmlDevice_t, unsigned *, void *))slots[213])(gpu, &answer, NULL),
           NVML_SUCCESS, "processes");
}

static unsigned int power_mw(nvmlDevice_t gpu)
{
    unsigned int mw = 0;

    CALL(nvmlDeviceGetPowerUsage)(gpu, &mw);
    return mw;
}

static void *power_of(void *gpu)
{
    return (void *)(uintptr_t)power_mw(gpu);
}

static void holding(void)
{
    const struct hold_table *hold;
    const void *table = NULL;
    nvmlDevice_t one = nvml_gpu(0), other = nvml_gpu(1);
    pthread_t thread;
    void *seen = NULL;

    is_int(CALL(nvmlInternalGetExportTable)(&table, HOLD_TABLE_ID), NVML_SUCCESS,
           "a table for holding");
    hold = table;
    is_int((int)hold->size, (int)sizeof(*hold), "is as large as it is known");
    file_put("gpus/0/control/power_usage_mw", "100000");
    hold->begin();
    is_int((int)power_mw(one), 100000, "what is read first");
    file_put("gpus/0/control/power_usage_mw", "110000");
    is_int((int)power_mw(one), 100000, "stays");
    pthread_create(&thread, NULL, power_of, one);
    pthread_join(thread, &seen);
    is_int((int)(uintptr_t)seen, 110000, "for this thread alone");
    power_mw(other);
    is_int((int)power_mw(one), 110000, "until another GPU is asked about");
    file_put("gpus/0/control/power_usage_mw", "120000");
    CALL(nvmlDeviceSetPersistenceMode)(one, NVML_FEATURE_ENABLED);
    is_int((int)power_mw(one), 120000, "until it changes something itself");
    file_put("gpus/0/control/power_usage_mw", "130000");
    hold->end();
    is_int((int)power_mw(one), 130000, "or the end");
    file_put("gpus/0/control/power_usage_mw", "auto");
}

/* --- a lost GPU ------------------------------------------------------------------------------ */

static void losing(void)
{
    const struct lost_table *lost;
    const void *table = NULL;
    char bus_id[32] = "";

    is_int(CALL(nvmlInternalGetExportTable)(&table, LOST_TABLE_ID), NVML_SUCCESS,
           "a table for lost GPUs");
    lost = table;
    is_int((int)lost->size, (int)sizeof(*lost), "is as large as it is known");
    file_put("gpus/0/control/fault", "fallen_off_bus");
    is_int(lost->bus_id(0, bus_id, sizeof(bus_id)), NVML_SUCCESS, "where a lost GPU is");
    is_int((int)strlen(bus_id), 12, "with a short domain");
    is_int(lost->bus_id(999, bus_id, sizeof(bus_id)), NVML_ERROR_INVALID_ARGUMENT, "not of any");
    file_put("gpus/0/control/fault", "recover");
}

/* --- the daemon ------------------------------------------------------------------------------ */

/* A worker that is killed is not noticed; a daemon that is gone is, and so is the next one. */
static void daemon_goes(const char *config)
{
    nvmlDevice_t gpu = nvml_gpu(1);
    nvmlEventSet_t set;
    nvmlEventData_t data;
    unsigned int mw;
    char name[96];
    pid_t worker = worker_now();
    pthread_t waiter;
    void *waited;
    int64_t since;

    CALL(nvmlEventSetCreate)(&set);
    CALL(nvmlDeviceRegisterEvents)(gpu, nvmlEventTypeXidCriticalError, set);
    if (worker > 0)
        kill(worker, SIGKILL);
    is_int(CALL(nvmlDeviceGetPowerUsage)(gpu, &mw), NVML_SUCCESS, "a killed worker is not noticed");
    is_int(CALL(nvmlDeviceSetPersistenceMode)(gpu, NVML_FEATURE_ENABLED), NVML_SUCCESS,
           "by a setter neither");
    kill(mounted.supervisor, SIGKILL);
    umount2(mounted.root, MNT_DETACH);
    ok(WAIT_UNTIL(CALL(nvmlDeviceGetPowerUsage)(gpu, &mw) == NVML_ERROR_DRIVER_NOT_LOADED),
       "a daemon that is gone is no driver");
    is_int(CALL(nvmlDeviceGetName)(gpu, name, sizeof(name)), NVML_ERROR_DRIVER_NOT_LOADED,
           "for texts, too");
    is_int(CALL(nvmlDeviceSetPersistenceMode)(gpu, NVML_FEATURE_ENABLED),
           NVML_ERROR_DRIVER_NOT_LOADED, "and setters");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 0), NVML_ERROR_DRIVER_NOT_LOADED,
           "who does not wait for events is told at once");
    since = now_ms();
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 300), NVML_ERROR_DRIVER_NOT_LOADED,
           "who waits for them is told");
    ok(now_ms() - since >= 300, "when its time is over");
    pthread_create(&waiter, NULL, wait_one, set);
    mounted_up("--dev", "null", "--config", config);
    ok(WAIT_UNTIL(CALL(nvmlDeviceGetPowerUsage)(gpu, &mw) == NVML_SUCCESS), "it is back");
    /* No telling when the waiter has found it: what came before is not for it. */
    ok(WAIT_UNTIL(file_put("gpus/1/control/fault", "xid 13") == 0 &&
                  pthread_tryjoin_np(waiter, &waited) == 0),
       "who waited all the time is woken");
    is_int((int64_t)(uintptr_t)waited, 13, "by an event of the next daemon");
    while (CALL(nvmlEventSetWait_v2)(set, &data, 0) == NVML_SUCCESS)
        ;
    is_int(CALL(nvmlDeviceGetName)(gpu, name, sizeof(name)), NVML_SUCCESS, "with its name");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 0), NVML_ERROR_TIMEOUT, "and its events");
    file_put("gpus/1/control/fault", "xid 79");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 30000), NVML_SUCCESS, "that come");
    CALL(nvmlEventSetFree)(set);
}

int main(void)
{
    static const char config[] = "tests/nvml_pair.yaml";

    nvml_mount(config);
    is_int(CALL(nvmlInit_v2)(), NVML_SUCCESS, "init");
    threads();
    both_see_it();
    forks();
    removal();
    export_table();
    holding();
    losing();
    visible();
    daemon_goes(config);
    is_int(CALL(nvmlShutdown)(), NVML_SUCCESS, "shutdown");
    ok(mounted_down(), "and down again");
    return tap_done();
}
