/*
 * Identity: what a GPU is and where it sits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/library.h"
#include "mocknvml/mig.h"

/* --- texts ----------------------------------------------------------------------------------- */

/* A MIG device has its own name: "NVIDIA A100-SXM4-40GB MIG 1g.5gb". */
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    char text[128], mig[32], full[192];
    nvmlReturn_t result = answer_check(name);

    if (result == NVML_SUCCESS)
        result = device_identity(device, IDENTITY_NAME, text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    if (!device->parent)
        return give_text(text, name, length);
    result = mig_profile_name(device, mig, sizeof(mig));
    if (result != NVML_SUCCESS)
        return result;
    snprintf(full, sizeof(full), "%s MIG %s", text, mig);
    return give_text(full, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    nvmlReturn_t result = answer_check(uuid);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    return result == NVML_SUCCESS ? give_text(device->uuid, uuid, length) : result;
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    return device_identity(device, IDENTITY_SERIAL, serial, length);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
    return device_identity(device, IDENTITY_VBIOS_VERSION, version, length);
}

nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *number, unsigned int length)
{
    return device_identity(device, IDENTITY_BOARD_PART_NUMBER, number, length);
}

nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char *version,
                                              unsigned int length)
{
    return device_identity(device, IDENTITY_INFOROM_IMAGE_VERSION, version, length);
}

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object,
                                         char *version, unsigned int length)
{
    static const enum identity ids[] = {
        [NVML_INFOROM_OEM] = IDENTITY_INFOROM_OEM_VERSION,
        [NVML_INFOROM_ECC] = IDENTITY_INFOROM_ECC_VERSION,
        [NVML_INFOROM_POWER] = IDENTITY_INFOROM_POWER_VERSION,
    };

    if ((unsigned int)object >= NVML_INFOROM_COUNT)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    if (object == NVML_INFOROM_DEN)
        return device_unsupported(device);
    return device_identity(device, ids[object], version, length);
}

nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device, unsigned int *checksum)
{
    char text[32];
    nvmlReturn_t result = answer_check(checksum);

    if (result == NVML_SUCCESS)
        result = device_identity(device, IDENTITY_INFOROM_CHECKSUM, text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    *checksum = (unsigned int)strtoul(text, NULL, 0);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    char text[64];

    return device_identity(device, IDENTITY_INFOROM_IMAGE_VERSION, text, sizeof(text));
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    return device_identity(device, IDENTITY_GSP_FIRMWARE_VERSION, version, 64);
}

nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *is_on,
                                          unsigned int *is_default)
{
    char text[64];
    nvmlReturn_t result = arguments_check(is_on && is_default);

    if (result == NVML_SUCCESS)
        result = device_identity(device, IDENTITY_GSP_FIRMWARE_VERSION, text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    *is_on = *is_default = 1;
    return NVML_SUCCESS;
}

/* --- numbers --------------------------------------------------------------------------------- */

static nvmlReturn_t identity_uint(nvmlDevice_t device, enum identity id, unsigned int *value)
{
    char text[64];
    nvmlReturn_t result = answer_check(value);

    if (result == NVML_SUCCESS)
        result = device_identity(device, id, text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    *value = (unsigned int)strtoul(text, NULL, 0);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    nvmlReturn_t result = answer_check(index);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result != NVML_SUCCESS)
        return result;
    if (device->parent)
        return mig_device_index(device, index);
    *index = (unsigned int)device->number;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor)
{
    return identity_uint(device, IDENTITY_MINOR_NUMBER, minor);
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores)
{
    return identity_uint(device, IDENTITY_CUDA_CORES, cores);
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *bits)
{
    return identity_uint(device, IDENTITY_MEMORY_BUS_WIDTH_BITS, bits);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    char text[32];
    nvmlReturn_t result = arguments_check(major && minor);

    if (result == NVML_SUCCESS)
        result = device_identity(device, IDENTITY_COMPUTE_CAPABILITY, text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    return sscanf(text, "%d.%d", major, minor) == 2 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t device_answers_since(nvmlDevice_t device, int capability)
{
    int major, minor;
    nvmlReturn_t result = nvmlDeviceGetCudaComputeCapability(device, &major, &minor);

    if (result != NVML_SUCCESS)
        return result;
    return major * 10 + minor < capability ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t device_answers_until(nvmlDevice_t device, int driver)
{
    char version[64];
    nvmlReturn_t result = device_identity(device, IDENTITY_DRIVER_VERSION, version,
                                          sizeof(version));

    return result == NVML_SUCCESS && atoi(version) >= driver ? NVML_ERROR_DEPRECATED : result;
}

struct word {
    const char *text;
    unsigned int value;
};

static nvmlReturn_t identity_word(nvmlDevice_t device, enum identity id, const struct word *words,
                                  unsigned int other, unsigned int *value)
{
    char text[64];
    nvmlReturn_t result = answer_check(value);

    if (result == NVML_SUCCESS)
        result = device_identity(device, id, text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    *value = other;
    for (; words->text; words++)
        if (!strcmp(words->text, text))
            *value = words->value;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture)
{
    static const struct word words[] = {
        { "Kepler", NVML_DEVICE_ARCH_KEPLER },
        { "Maxwell", NVML_DEVICE_ARCH_MAXWELL },
        { "Pascal", NVML_DEVICE_ARCH_PASCAL },
        { "Volta", NVML_DEVICE_ARCH_VOLTA },
        { "Turing", NVML_DEVICE_ARCH_TURING },
        { "Ampere", NVML_DEVICE_ARCH_AMPERE },
        { "Ada", NVML_DEVICE_ARCH_ADA },
        { "Ada Lovelace", NVML_DEVICE_ARCH_ADA },
        { "Hopper", NVML_DEVICE_ARCH_HOPPER },
        { "Blackwell", NVML_DEVICE_ARCH_BLACKWELL },
        { NULL, 0 },
    };

    return identity_word(device, IDENTITY_ARCHITECTURE, words, NVML_DEVICE_ARCH_UNKNOWN,
                         architecture);
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand)
{
    static const struct word words[] = {
        { "Quadro", NVML_BRAND_QUADRO },
        { "Tesla", NVML_BRAND_TESLA },
        { "NVS", NVML_BRAND_NVS },
        { "GRID", NVML_BRAND_GRID },
        { "GeForce", NVML_BRAND_GEFORCE },
        { "Titan", NVML_BRAND_TITAN },
        { "QuadroRTX", NVML_BRAND_QUADRO_RTX },
        { "Quadro RTX", NVML_BRAND_QUADRO_RTX },
        { "NvidiaRTX", NVML_BRAND_NVIDIA_RTX },
        { "NVIDIA RTX", NVML_BRAND_NVIDIA_RTX },
        { "GeForceRTX", NVML_BRAND_GEFORCE_RTX },
        { "GeForce RTX", NVML_BRAND_GEFORCE_RTX },
        { "Nvidia", NVML_BRAND_NVIDIA },
        { "NVIDIA", NVML_BRAND_NVIDIA },
        { NULL, 0 },
    };
    unsigned int value;
    nvmlReturn_t result = identity_word(device, IDENTITY_BRAND, words, NVML_BRAND_UNKNOWN,
                                        brand ? &value : NULL);

    if (result == NVML_SUCCESS)
        *brand = (nvmlBrandType_t)value;
    return result;
}

/* --- place ----------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    char text[32];
    nvmlReturn_t result = answer_check(pci);
    unsigned int function;

    if (result == NVML_SUCCESS)
        result = device_identity(device, IDENTITY_BUS_ID, text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    if (sscanf(text, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function) != 4)
        return NVML_ERROR_UNKNOWN;
    snprintf(pci->busId, sizeof(pci->busId), "%s", text);
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.%X", pci->domain & 0xffff,
             pci->bus & 0xff, pci->device & 0x1f, function & 7);
    result = identity_uint(device, IDENTITY_PCI_DEVICE_ID, &pci->pciDeviceId);
    return result != NVML_SUCCESS
               ? result
               : identity_uint(device, IDENTITY_PCI_SUBSYSTEM_ID, &pci->pciSubSystemId);
}

/* The older structure has only the short bus id, and four words that nobody knows the meaning of. */
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    nvmlPciInfo_t info;
    nvmlReturn_t result = answer_check(pci);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetPciInfo_v3(device, &info);
    if (result != NVML_SUCCESS)
        return result;
    *pci = (nvmlPciInfo_v2_t){ .domain = info.domain,
                               .bus = info.bus,
                               .device = info.device,
                               .pciDeviceId = info.pciDeviceId,
                               .pciSubSystemId = info.pciSubSystemId };
    memcpy(pci->busId, info.busIdLegacy, sizeof(pci->busId));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    return nvmlDeviceGetPciInfo_v2(device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci)
{
    nvmlPciInfo_t info;
    nvmlReturn_t result = STRUCT_CHECK(pci, 1);
    int64_t class = 0;

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetPciInfo_v3(device, &info);
    if (result != NVML_SUCCESS)
        return result;
    result = device_fact(device, "pci_class", &class);
    *pci = (nvmlPciInfoExt_v1_t){ .version = pci->version,
                                  .domain = info.domain,
                                  .bus = info.bus,
                                  .device = info.device,
                                  .pciDeviceId = info.pciDeviceId,
                                  .pciSubSystemId = info.pciSubSystemId,
                                  .baseClass = (unsigned int)class >> 16 & 0xff,
                                  .subClass = (unsigned int)class >> 8 & 0xff };
    memcpy(pci->busId, info.busId, sizeof(pci->busId));
    return result;
}

/* As the driver numbers boards: by the address of the GPU, where each is a board of its own. */
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *id)
{
    nvmlPciInfo_t pci;
    nvmlReturn_t result = answer_check(id);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetPciInfo_v3(device, &pci);
    if (result != NVML_SUCCESS)
        return result;
    *id = pci.domain << 16 | pci.bus << 8 | pci.device << 3;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int *is_multi)
{
    return give_uint(device, 0, is_multi);
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t other, int *same)
{
    nvmlReturn_t result = answer_check(same);

    if (result == NVML_SUCCESS)
        result = device_check(one);
    if (result == NVML_SUCCESS)
        result = device_check(other);
    if (result != NVML_SUCCESS)
        return result;
    *same = one == other;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned int *id)
{
    return give_fact(device, "module_id", id);
}

nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned int *irq)
{
    return give_fact(device, "irq", irq);
}

nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, unsigned int *type)
{
    return give_uint(device, NVML_BUS_TYPE_PCIE, type);
}

nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device, unsigned int *source)
{
    return give_uint(device, NVML_POWER_SOURCE_AC, source);
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned int *mode)
{
    return give_uint(device, NVML_GPU_VIRTUALIZATION_MODE_NONE, mode);
}

/* --- displays and boards that data centres do not have --------------------------------------- */

/* A driver says that displays could be attached, whatever the board; from 580 on it does not say any more. */
nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    nvmlReturn_t result = answer_check(mode);

    if (result == NVML_SUCCESS)
        result = device_answers_until(device, DISPLAY_MODE_GONE);
    if (result == NVML_SUCCESS)
        *mode = NVML_FEATURE_ENABLED;
    return result;
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t *active)
{
    return give_uint(device, NVML_FEATURE_DISABLED, (unsigned int *)active);
}

nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t device, nvmlBridgeChipHierarchy_t *bridges)
{
    return bridges ? device_unsupported(device) : library_refuse(NVML_ERROR_INVALID_ARGUMENT);
}

/* None of the things that a mask could name. */
nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t device,
                                       nvmlDeviceCapabilities_v1_t *capabilities)
{
    nvmlReturn_t result = STRUCT_CHECK(capabilities, 1);

    return result == NVML_SUCCESS ? give_uint(device, 0, &capabilities->capMask) : result;
}

/* Only boards that share a module with a processor know of the rack around them; here, of their module in it. */
nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_v2_t *info)
{
    int64_t links, module;
    nvmlReturn_t result = STRUCT_CHECK(info, 2);

    if (result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
        result = struct_check(info, NVML_STRUCT_VERSION(sizeof(nvmlPlatformInfo_v1_t), 1));
    if (result == NVML_SUCCESS)
        result = device_fact(device, "c2c", &links);
    if (result == NVML_SUCCESS && !links)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        result = device_fact(device, "module_id", &module);
    if (result != NVML_SUCCESS)
        return result;
    /* Both structures have the same fields, of which the first one's have other names. */
    *info = (nvmlPlatformInfo_v2_t){ .version = info->version, .moduleId = (char)module };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode)
{
    struct table board;
    char word[16] = "", *line;
    nvmlReturn_t result = STRUCT_CHECK(mode, 1);

    if (result == NVML_SUCCESS)
        result = device_table(device, TABLE_BOARD, &board);
    if (result != NVML_SUCCESS)
        return result;
    while (!*word && (line = reader_line(&board.rest)))
        sscanf(line, "addressing_mode %15s", word);
    mode->value = !strcmp(word, "HMM")   ? NVML_DEVICE_ADDRESSING_MODE_HMM
                  : !strcmp(word, "ATS") ? NVML_DEVICE_ADDRESSING_MODE_ATS
                                         : NVML_DEVICE_ADDRESSING_MODE_NONE;
    return NVML_SUCCESS;
}

/* The id that stays with the silicon: here, made of the UUID. */
nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, nvmlPdi_t *pdi)
{
    nvmlReturn_t result = STRUCT_CHECK(pdi, 1);
    unsigned long long value = 0;

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result != NVML_SUCCESS)
        return result;
    for (const char *c = device->uuid + 4; *c; c++)
        if (isxdigit((unsigned char)*c))
            value = value << 4 |
                    (unsigned long long)(isdigit((unsigned char)*c) ? *c - '0' : *c % 32 + 9);
    pdi->value = value;
    return NVML_SUCCESS;
}

/* Hopper brought the question; a board without such links answers that the mode is off. */
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, nvmlC2cModeInfo_v1_t *info)
{
    nvmlReturn_t result = answer_check(info);
    unsigned int architecture;
    int64_t links;

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetArchitecture(device, &architecture);
    if (result == NVML_SUCCESS && architecture < NVML_DEVICE_ARCH_HOPPER)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        result = device_fact(device, "c2c", &links);
    if (result != NVML_SUCCESS)
        return result;
    info->isC2cEnabled = links > 0;
    return NVML_SUCCESS;
}
