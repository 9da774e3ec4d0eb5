/*
 * Values: what a GPU is, where it sits, and the switches that it has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mocknvml/smi/gpu.h"

/* --- the node ----------------------------------------------------------------------------------- */

static nvmlReturn_t say_time(char *text)
{
    struct timespec now;
    struct tm local;
    char seconds[32];

    clock_gettime(CLOCK_REALTIME, &now);
    strftime(seconds, sizeof(seconds), "%Y/%m/%d %H:%M:%S", localtime_r(&now.tv_sec, &local));
    return say(NVML_SUCCESS, text, "%s.%03ld", seconds, now.tv_nsec / 1000000);
}

nvmlReturn_t get_node(struct gpu *gpu, int which, char *text)
{
    unsigned int count = 0;
    nvmlReturn_t result;

    (void)gpu;
    switch ((enum node_value)which) {
    case NODE_TIME:
        return say_time(text);
    case NODE_DRIVER:
        return ASK(SystemGetDriverVersion, text, TEXT_BYTES);
    default:
        result = ASK(DeviceGetCount_v2, &count);
        return say(result, text, "%u", count);
    }
}

/* --- texts -------------------------------------------------------------------------------------- */

nvmlReturn_t get_gsp_version(struct gpu *gpu, int unused, char *text)
{
    (void)unused;
    return ASK(DeviceGetGspFirmwareVersion, gpu->device, text);
}

nvmlReturn_t get_hostname(struct gpu *gpu, int unused, char *text)
{
    (void)unused;
    return ASK(DeviceGetHostname_v1, gpu->device, text);
}

nvmlReturn_t get_inforom(struct gpu *gpu, int object, char *text)
{
    return ASK(DeviceGetInforomVersion, gpu->device, (nvmlInforomObject_t)object, text, TEXT_BYTES);
}

nvmlReturn_t get_inforom_valid(struct gpu *gpu, int unused, char *text)
{
    nvmlReturn_t result = ASK(DeviceValidateInforom, gpu->device);

    (void)unused;
    if (result == NVML_ERROR_CORRUPTED_INFOROM)
        return say(NVML_SUCCESS, text, "invalid");
    return say(result, text, "valid");
}

nvmlReturn_t get_brand(struct gpu *gpu, int unused, char *text)
{
    static const char *const brands[] = { [NVML_BRAND_QUADRO] = "Quadro",
                                          [NVML_BRAND_TESLA] = "Tesla",
                                          [NVML_BRAND_NVS] = "NVS",
                                          [NVML_BRAND_GRID] = "Grid",
                                          [NVML_BRAND_GEFORCE] = "GeForce",
                                          [NVML_BRAND_TITAN] = "Titan",
                                          [NVML_BRAND_QUADRO_RTX] = "Quadro RTX",
                                          [NVML_BRAND_NVIDIA_RTX] = "NVIDIA RTX",
                                          [NVML_BRAND_NVIDIA] = "NVIDIA",
                                          [NVML_BRAND_GEFORCE_RTX] = "GeForce RTX",
                                          [NVML_BRAND_TITAN_RTX] = "Titan RTX",
                                          "Unknown" };
    nvmlBrandType_t brand = NVML_BRAND_UNKNOWN;
    nvmlReturn_t result = ASK(DeviceGetBrand, gpu->device, &brand);

    (void)unused;
    return SAY_WORD(result, text, brands, brand);
}

nvmlReturn_t get_architecture(struct gpu *gpu, int unused, char *text)
{
    static const char *const names[] = {
        [NVML_DEVICE_ARCH_KEPLER] = "Kepler",       [NVML_DEVICE_ARCH_MAXWELL] = "Maxwell",
        [NVML_DEVICE_ARCH_PASCAL] = "Pascal",       [NVML_DEVICE_ARCH_VOLTA] = "Volta",
        [NVML_DEVICE_ARCH_TURING] = "Turing",       [NVML_DEVICE_ARCH_AMPERE] = "Ampere",
        [NVML_DEVICE_ARCH_ADA] = "Ada Lovelace",    [NVML_DEVICE_ARCH_HOPPER] = "Hopper",
        [NVML_DEVICE_ARCH_BLACKWELL] = "Blackwell", "Unknown"
    };
    unsigned int *architecture = &gpu->answers.architecture.value;
    nvmlReturn_t result = ONCE(gpu, architecture,
                               ASK(DeviceGetArchitecture, gpu->device, architecture));

    (void)unused;
    return SAY_WORD(result, text, names, *architecture);
}

nvmlReturn_t get_capability(struct gpu *gpu, int unused, char *text)
{
    int major = 0, minor = 0;
    nvmlReturn_t result = ASK(DeviceGetCudaComputeCapability, gpu->device, &major, &minor);

    (void)unused;
    return say(result, text, "%d.%d", major, minor);
}

/* --- numbers ------------------------------------------------------------------------------------ */

nvmlReturn_t get_pdi(struct gpu *gpu, int unused, char *text)
{
    nvmlPdi_t pdi = { .version = VERSION_OF(pdi, 1) };
    nvmlReturn_t result = ASK(DeviceGetPdi, gpu->device, &pdi);

    (void)unused;
    return say(result, text, "0x%016llx", pdi.value);
}

nvmlReturn_t get_board_id(struct gpu *gpu, int unused, char *text)
{
    unsigned int id = 0;
    nvmlReturn_t result = ASK(DeviceGetBoardId, gpu->device, &id);

    (void)unused;
    return say(result, text, "0x%x", id);
}

nvmlReturn_t get_multi_gpu(struct gpu *gpu, int unused, char *text)
{
    unsigned int is_multi = 0;
    nvmlReturn_t result = ASK(DeviceGetMultiGpuBoard, gpu->device, &is_multi);

    (void)unused;
    return say_yes(result, text, is_multi);
}

/* --- PCI ---------------------------------------------------------------------------------------- */

static nvmlReturn_t ask_class(struct gpu *gpu)
{
    nvmlPciInfoExt_v1_t *pci = &gpu->answers.class.value;

    pci->version = VERSION_OF(*pci, 1);
    return ASK(DeviceGetPciInfoExt, gpu->device, pci);
}

/* Hexadecimal, without the 0x that only some outputs put before it. */
nvmlReturn_t get_pci(struct gpu *gpu, int which, char *text)
{
    const nvmlPciInfo_t *pci = &gpu->answers.pci.value;
    bool of_class = which == PCI_BASE_CLASS || which == PCI_SUB_CLASS;
    nvmlReturn_t result = of_class ? ONCE(gpu, class, ask_class(gpu))
                                   : ONCE(gpu, pci,
                                          ASK(DeviceGetPciInfo_v3, gpu->device,
                                              &gpu->answers.pci.value));

    switch ((enum pci_value)which) {
    case PCI_BUS_ID:
        return say(result, text, "%s", pci->busId);
    case PCI_DOMAIN:
        return say(result, text, "%04X", pci->domain);
    case PCI_BUS:
        return say(result, text, "%02X", pci->bus);
    case PCI_DEVICE:
        return say(result, text, "%02X", pci->device);
    case PCI_BASE_CLASS:
        return say(result, text, "%X", gpu->answers.class.value.baseClass);
    case PCI_SUB_CLASS:
        return say(result, text, "%X", gpu->answers.class.value.subClass);
    case PCI_DEVICE_ID:
        return say(result, text, "%08X", pci->pciDeviceId);
    default:
        return say(result, text, "%08X", pci->pciSubSystemId);
    }
}

nvmlReturn_t get_bridge(struct gpu *gpu, int firmware, char *text)
{
    nvmlBridgeChipHierarchy_t *bridges = &gpu->answers.bridges.value;
    nvmlReturn_t result = ONCE(gpu, bridges, ASK(DeviceGetBridgeChipInfo, gpu->device, bridges));
    const nvmlBridgeChipInfo_t *chip = &bridges->bridgeChipInfo[0];

    if (result == NVML_SUCCESS && bridges->bridgeCount == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return firmware ? say(result, text, "%u", chip->fwVersion)
                    : say(result, text, chip->type ? "BR04" : "PLX");
}

/* --- switches ----------------------------------------------------------------------------------- */

/* Whether a screen could be attached, which the display mode was another name for. */
static nvmlReturn_t ask_display(struct gpu *gpu, nvmlEnableState_t *state)
{
    nvmlReturn_t result = ONCE(gpu, display,
                               ASK(DeviceGetDisplayMode, gpu->device, &gpu->answers.display.value));

    *state = gpu->answers.display.value;
    return result;
}

static nvmlReturn_t ask_state(struct gpu *gpu, enum state_value which, unsigned int *on)
{
    nvmlEnableState_t state = NVML_FEATURE_DISABLED, other = NVML_FEATURE_DISABLED;
    struct dram_encryption now = { .version = VERSION_OF(now, 1) }, then = now;
    nvmlC2cModeInfo_v1_t c2c = { 0 };
    nvmlDevice_t device = gpu->device;
    struct answers *a = &gpu->answers;
    nvmlReturn_t result;

    switch (which) {
    case STATE_PERSISTENCE:
        result = ASK(DeviceGetPersistenceMode, device, &state);
        break;
    case STATE_DISPLAY_MODE:
        result = ask_display(gpu, &state);
        break;
    case STATE_DISPLAY_ACTIVE:
        result = ASK(DeviceGetDisplayActive, device, &state);
        break;
    case STATE_ACCOUNTING:
        result = ASK(DeviceGetAccountingMode, device, &state);
        break;
    case STATE_C2C:
        result = ASK(DeviceGetC2cModeInfoV, device, &c2c);
        *on = c2c.isC2cEnabled;
        return result;
    case STATE_ECC:
    case STATE_ECC_PENDING:
        result = gpu_ecc(gpu, which == STATE_ECC_PENDING, &state);
        break;
    case STATE_MIG:
    case STATE_MIG_PENDING:
        return gpu_mig(gpu, which == STATE_MIG_PENDING, on);
    case STATE_GSP:
    case STATE_GSP_DEFAULT:
        result = ONCE(gpu, gsp,
                      ASK(DeviceGetGspFirmwareMode, device, &a->gsp.value, &a->gsp_default.value));
        *on = which == STATE_GSP ? a->gsp.value : a->gsp_default.value;
        return result;
    case STATE_DRAM_ENCRYPTION:
    case STATE_DRAM_ENCRYPTION_PENDING:
        result = ASK(DeviceGetDramEncryptionMode, device, &now, &then);
        state = which == STATE_DRAM_ENCRYPTION ? now.state : then.state;
        break;
    default:
        result = ASK(DeviceGetAutoBoostedClocksEnabled, device, &state, &other);
        state = which == STATE_AUTO_BOOST ? state : other;
        break;
    }
    *on = state;
    return result;
}

nvmlReturn_t get_state(struct gpu *gpu, int which, char *text)
{
    unsigned int on = 0;
    nvmlReturn_t result = ask_state(gpu, (enum state_value)which, &on);

    if (result == NVML_SUCCESS && (which == STATE_AUTO_BOOST || which == STATE_AUTO_BOOST_DEFAULT))
        return say(result, text, on ? "On" : "Off");
    return say_enabled(result, text, on);
}

nvmlReturn_t get_display_attached(struct gpu *gpu, int unused, char *text)
{
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    nvmlReturn_t result = ask_display(gpu, &state);

    (void)unused;
    if (result == NVML_ERROR_DEPRECATED)
        return say(NVML_SUCCESS, text, "Yes"); /* what newer drivers say of every board */
    return say_yes(result, text, state);
}

nvmlReturn_t get_addressing(struct gpu *gpu, int unused, char *text)
{
    static const char *const modes[] = { "None", "HMM", "ATS", "Unknown" };
    nvmlDeviceAddressingMode_t mode = { .version = VERSION_OF(mode, 1) };
    nvmlReturn_t result = ASK(DeviceGetAddressingMode, gpu->device, &mode);

    (void)unused;
    return SAY_WORD(result, text, modes, mode.value);
}

nvmlReturn_t get_virtualization(struct gpu *gpu, int unused, char *text)
{
    static const char *const modes[] = { "None",      "Pass-Through", "VGPU",
                                         "Host VGPU", "Host VSGA",    "Unknown" };
    unsigned int mode = 0;
    nvmlReturn_t result = ASK(DeviceGetVirtualizationMode, gpu->device, &mode);

    (void)unused;
    return SAY_WORD(result, text, modes, mode);
}

nvmlReturn_t get_host_vgpu(struct gpu *gpu, int unused, char *text)
{
    static const char *const modes[] = { "Non SR-IOV", "SR-IOV", "Unknown" };
    unsigned int mode = 0;
    nvmlReturn_t result = ASK(DeviceGetHostVgpuMode, gpu->device, &mode);

    (void)unused;
    return SAY_WORD(result, text, modes, mode);
}

nvmlReturn_t get_operation_mode(struct gpu *gpu, int pending, char *text)
{
    static const char *const modes[] = { "All On", "Compute", "Low Double Precision", "Unknown" };
    nvmlGpuOperationMode_t now = NVML_GOM_ALL_ON, then = NVML_GOM_ALL_ON;
    nvmlReturn_t result = ASK(DeviceGetGpuOperationMode, gpu->device, &now, &then);

    return SAY_WORD(result, text, modes, pending ? then : now);
}

nvmlReturn_t get_driver_model(struct gpu *gpu, int pending, char *text)
{
    static const char *const models[] = { "WDDM", "TCC", "MCDM", "Unknown" };
    nvmlDriverModel_t now = NVML_DRIVER_WDDM, then = NVML_DRIVER_WDDM;
    nvmlReturn_t result = ASK(DeviceGetDriverModel_v2, gpu->device, &now, &then);

    return SAY_WORD(result, text, models, pending ? then : now);
}

nvmlReturn_t get_driver_capability(struct gpu *gpu, int capability, char *text)
{
    unsigned int has = 0;
    nvmlReturn_t result = ASK(GetVgpuDriverCapabilities, (unsigned int)capability, &has);

    (void)gpu;
    return say(result, text, has ? "Supported" : "Not Supported");
}

nvmlReturn_t get_device_capability(struct gpu *gpu, int capability, char *text)
{
    unsigned int has = 0;
    nvmlReturn_t result = ASK(DeviceGetVgpuCapabilities, gpu->device, (unsigned int)capability,
                              &has);

    return say(result, text, has ? "Supported" : "Not Supported");
}

nvmlReturn_t get_egm(struct gpu *gpu, int unused, char *text)
{
    nvmlDeviceCapabilities_v1_t has = { .version = VERSION_OF(has, 1) };

    (void)unused;
    if (ASK(DeviceGetCapabilities, gpu->device, &has) != NVML_SUCCESS)
        has.capMask = 0;
    return say(NVML_SUCCESS, text, has.capMask & 1 ? "enabled" : "disabled");
}

nvmlReturn_t get_recovery(struct gpu *gpu, int unused, char *text)
{
    static const char *const actions[] = { "None",      "Reset",           "Reboot",
                                           "Drain P2P", "Drain and Reset", "Recover IMEX Domain",
                                           "Bus Reset", "Reboot",          "Unknown" };
    long long action = 0;
    nvmlReturn_t result = gpu_field(gpu, FIELD_RECOVERY_ACTION, &action);

    (void)unused;
    return SAY_WORD(result, text, actions, (unsigned int)action);
}

/* --- the black box and the platform ------------------------------------------------------------- */

nvmlReturn_t get_flush_time(struct gpu *gpu, int unused, char *text)
{
    unsigned long long us = 0;
    unsigned long duration_us = 0;
    nvmlReturn_t result = ASK(DeviceGetLastBBXFlushTime, gpu->device, &us, &duration_us);
    time_t seconds = (time_t)(us / 1000000);
    char stamp[32];
    struct tm local;

    (void)unused;
    strftime(stamp, sizeof(stamp), "%Y/%m/%d %H:%M:%S", localtime_r(&seconds, &local));
    return say(result, text, "%s.%03llu", stamp, us / 1000 % 1000);
}

nvmlReturn_t get_flush_duration(struct gpu *gpu, int unused, char *text)
{
    unsigned long long us = 0;
    unsigned long duration_us = 0;
    nvmlReturn_t result = ASK(DeviceGetLastBBXFlushTime, gpu->device, &us, &duration_us);

    (void)unused;
    return say(result, text, "%lu", duration_us);
}

static nvmlReturn_t ask_platform(struct gpu *gpu)
{
    nvmlPlatformInfo_v2_t *platform = &gpu->answers.platform.value;

    platform->version = VERSION_OF(*platform, 2);
    return ASK(DeviceGetPlatformInfo, gpu->device, platform);
}

static nvmlReturn_t say_guid(nvmlReturn_t result, char *text, const char *bytes)
{
    uint32_t high, low;

    memcpy(&high, bytes, sizeof(high));
    memcpy(&low, bytes + sizeof(high), sizeof(low));
    return say(result, text, "0x%08" PRIx32 "%08" PRIx32, ntohl(high), ntohl(low));
}

nvmlReturn_t get_platform(struct gpu *gpu, int which, char *text)
{
    static const char *const peers[] = { "Direct Connected", "Switch Connected", "Unknown" };
    const nvmlPlatformInfo_v2_t *p = &gpu->answers.platform.value;
    nvmlReturn_t result = ONCE(gpu, platform, ask_platform(gpu));

    switch ((enum platform_value)which) {
    case PLATFORM_CHASSIS:
        return say(result, text, "%.16s", p->chassisSerialNumber);
    case PLATFORM_SLOT:
        return say(result, text, "%d", p->slotNumber);
    case PLATFORM_TRAY:
        return say(result, text, "%d", p->trayIndex);
    case PLATFORM_HOST:
        return say(result, text, "%d", p->hostId);
    case PLATFORM_PEER:
        return SAY_WORD(result, text, peers, (unsigned char)p->peerType);
    case PLATFORM_MODULE:
        return get_uint(gpu, UINT_OF(DeviceGetModuleId), text);
    default:
        return say_guid(result, text, p->ibGuid);
    }
}
