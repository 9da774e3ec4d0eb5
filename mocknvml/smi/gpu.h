/*
 * Gpu: one GPU as it is asked about, and the values that can be asked for.
 *
 * A getter asks the library and writes the value as text without its unit. What one function answers for
 * several values is asked once in a pass and kept in `answers`; gpu_fresh() begins the next pass. All
 * numbered fields of the library come from one call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_GPU_H
#define SMI_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "mocknvml/smi/api.h"

/* Numbered fields that values come from: see fields.def. */
enum gpu_field {
#define FIELD(name, number, scope) FIELD_##name,
#include "mocknvml/smi/fields.def"
    FIELD_COUNT
};

struct gpu {
    nvmlDevice_t device;
    unsigned int index; /* as the library counts */
    char bus_id[32];

    struct answers {
#define ANSWER(type, name)   \
    struct {                 \
        bool asked;          \
        nvmlReturn_t result; \
        type value;          \
    } name;
        ANSWER(nvmlPciInfo_t, pci)
        ANSWER(nvmlPciInfoExt_v1_t, class)
        ANSWER(nvmlMemory_v2_t, memory)
        ANSWER(nvmlBAR1Memory_t, bar1)
        ANSWER(nvmlMemory_t, protected)
        ANSWER(nvmlUtilization_t, utilization)
        ANSWER(nvmlEnableState_t, ecc_current)
        ANSWER(nvmlEnableState_t, ecc_pending)
        ANSWER(unsigned int, mig_pending)
        ANSWER(unsigned int, mig)
        ANSWER(unsigned int, architecture)
        ANSWER(nvmlEccSramErrorStatus_v1_t, sram)
        ANSWER(nvmlRowRemapperHistogramValues_t, banks)
        ANSWER(nvmlRepairStatus_t, repair)
        ANSWER(unsigned long long, reasons)
        ANSWER(nvmlGpuFabricInfo_v3_t, fabric)
        ANSWER(nvmlPlatformInfo_v2_t, platform)
        ANSWER(nvmlFBCStats_t, capture)
        ANSWER(int, margin)
        ANSWER(nvmlPstates_t, pstate)
        ANSWER(nvmlEnableState_t, display)
        ANSWER(nvmlBridgeChipHierarchy_t, bridges)
        ANSWER(unsigned int, gsp_default)
        ANSWER(unsigned int, gsp)
#undef ANSWER
        struct {
            bool asked;
            nvmlReturn_t result;
            unsigned int sessions, fps, latency_us;
        } encoder;
        struct {
            bool asked;
            nvmlReturn_t result;
            nvmlFieldValue_t values[FIELD_COUNT];
        } fields;
    } answers;
};

/* ONCE(gpu, memory, call): what `call` answered when it was first made in this pass. */
#define ONCE(gpu, name, call)         \
    ((gpu)->answers.name.asked        \
         ? (gpu)->answers.name.result \
         : ((gpu)->answers.name.asked = true, (gpu)->answers.name.result = (call)))

/* Forgets the answers: the next pass asks again. */
void gpu_fresh(struct gpu *gpu);

/* A numbered field. */
nvmlReturn_t gpu_field(struct gpu *gpu, enum gpu_field field, long long *value);

/* One by its number, of a link or another scope; not kept. */
nvmlReturn_t gpu_scoped_field(struct gpu *gpu, unsigned int number, unsigned int scope,
                              unsigned long long *value);

/* "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-…)": the line above what a command says about a GPU. */
void gpu_title(struct gpu *gpu);

/* Whether there is MIG here, and it is on. */
bool gpu_is_mig(struct gpu *gpu);

/* What several functions give. */
nvmlReturn_t gpu_memory(struct gpu *gpu, nvmlMemory_v2_t *memory);
nvmlReturn_t gpu_ecc(struct gpu *gpu, bool pending, nvmlEnableState_t *state);
nvmlReturn_t gpu_mig(struct gpu *gpu, bool pending, unsigned int *mode);
nvmlReturn_t gpu_utilization(struct gpu *gpu, nvmlUtilization_t *rates);
nvmlReturn_t gpu_reasons(struct gpu *gpu, unsigned long long *reasons);

/* --- values ------------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 256 };

/* Writes the value that `argument` says to `text`, of TEXT_BYTES. */
typedef nvmlReturn_t getter(struct gpu *gpu, int argument, char *text);

/* Writes the text when the answer is good; returns `result` either way. */
__attribute__((format(printf, 3, 4))) nvmlReturn_t say(nvmlReturn_t result, char *text,
                                                       const char *format, ...);

/* The words for a good answer's number: the last one for numbers beyond. */
nvmlReturn_t say_word(nvmlReturn_t result, char *text, const char *const *words, size_t count,
                      unsigned int number);
#define SAY_WORD(result, text, words, number) \
    say_word(result, text, words, sizeof(words) / sizeof((words)[0]), number)

/* "Enabled" and "Disabled", "Yes" and "No", "Active" and "Not Active". */
nvmlReturn_t say_enabled(nvmlReturn_t result, char *text, unsigned int state);
nvmlReturn_t say_yes(nvmlReturn_t result, char *text, unsigned int state);
nvmlReturn_t say_active(nvmlReturn_t result, char *text, bool active);

/* For values that the library's interface does not have. */
getter get_absent;

/*
 * Values that a function gives as they are: the argument of get_text, get_uint and get_percent is a function of
 * that type, and the compiler sees that it is.
 */
typedef nvmlReturn_t text_function(nvmlDevice_t device, char *text, unsigned int size);
typedef nvmlReturn_t uint_function(nvmlDevice_t device, unsigned int *number);
typedef nvmlReturn_t percent_function(nvmlDevice_t device, unsigned int *percent,
                                      unsigned int *period_us);
#define FUNCTION_OF(type, name) \
    ((int)(offsetof(struct api, name) + 0 * sizeof(api.name == (type *)0)))
#define TEXT_OF(name) FUNCTION_OF(text_function, name)
#define UINT_OF(name) FUNCTION_OF(uint_function, name)
#define PERCENT_OF(name) FUNCTION_OF(percent_function, name)

enum node_value { NODE_TIME, NODE_DRIVER, NODE_COUNT };
enum pci_value {
    PCI_BUS_ID,
    PCI_DOMAIN,
    PCI_BUS,
    PCI_DEVICE,
    PCI_BASE_CLASS,
    PCI_SUB_CLASS,
    PCI_DEVICE_ID,
    PCI_SUBSYSTEM_ID
};
enum state_value {
    STATE_PERSISTENCE,
    STATE_DISPLAY_MODE,
    STATE_DISPLAY_ACTIVE,
    STATE_ACCOUNTING,
    STATE_C2C,
    STATE_ECC,
    STATE_ECC_PENDING,
    STATE_MIG,
    STATE_MIG_PENDING,
    STATE_GSP,
    STATE_GSP_DEFAULT,
    STATE_DRAM_ENCRYPTION,
    STATE_DRAM_ENCRYPTION_PENDING,
    STATE_AUTO_BOOST,
    STATE_AUTO_BOOST_DEFAULT
};
enum platform_value {
    PLATFORM_CHASSIS,
    PLATFORM_SLOT,
    PLATFORM_TRAY,
    PLATFORM_HOST,
    PLATFORM_PEER,
    PLATFORM_MODULE,
    PLATFORM_GUID
};
enum memory_value { MEMORY_TOTAL, MEMORY_RESERVED, MEMORY_USED, MEMORY_FREE };
enum engine_value { ENGINE_GPU, ENGINE_MEMORY };
enum session_value { SESSION_COUNT, SESSION_FPS, SESSION_LATENCY };
/* A kind of counter: which errors, since when, where. */
enum { ERRORS_CORRECTED = 0, ERRORS_UNCORRECTED = 2, ERRORS_VOLATILE = 0, ERRORS_AGGREGATE = 1 };
enum sram_value {
    SRAM_PARITY,
    SRAM_SECDED,
    SRAM_AGGREGATE_PARITY,
    SRAM_AGGREGATE_SECDED,
    SRAM_THRESHOLD,
    SRAM_L2,
    SRAM_SM,
    SRAM_MCU,
    SRAM_PCIE,
    SRAM_OTHER,
    SRAM_CORRECTED,
    SRAM_AGGREGATE_CORRECTED
};
enum bank_value { BANKS_MAX, BANKS_HIGH, BANKS_PARTIAL, BANKS_LOW, BANKS_NONE };
enum fabric_value {
    FABRIC_STATE,
    FABRIC_STATUS,
    FABRIC_CLIQUE,
    FABRIC_CLUSTER,
    FABRIC_SUMMARY,
    FABRIC_BANDWIDTH,
    FABRIC_RECOVERY,
    FABRIC_UNHEALTHY,
    FABRIC_TIMEOUT,
    FABRIC_CONFIGURATION,
    FABRIC_PARTITION
};
enum clock_value { CLOCK_CURRENT, CLOCK_APPLICATION, CLOCK_DEFAULT, CLOCK_MAX, CLOCK_BOOST };
#define CLOCK(kind, type) ((kind)*NVML_CLOCK_COUNT + (type))

getter get_text, get_uint, get_percent, get_node, get_gsp_version, get_hostname, get_pci, get_state,
    get_platform, get_brand, get_architecture, get_capability, get_pdi, get_board_id, get_multi_gpu,
    get_inforom, get_inforom_valid, get_display_attached, get_addressing, get_virtualization,
    get_host_vgpu, get_operation_mode, get_driver_model, get_flush_time, get_flush_duration,
    get_egm, get_recovery, get_driver_capability, get_device_capability;
getter get_bridge, get_throughput, get_atomics, get_pstate, get_reason, get_reasons,
    get_reasons_supported, get_counter_us, get_memory, get_bar1, get_protected, get_engine,
    get_encoder, get_capture, get_clock, get_compute_mode;
getter get_field, get_yes_field, get_milliwatts, get_sram, get_sram_errors, get_errors_total,
    get_bank, get_repair, get_unrepairable, get_remapped, get_retired_pending, get_temperature,
    get_memory_temperature, get_threshold, get_margin, get_power_draw, get_power_management,
    get_fabric, get_edpp;

#endif
