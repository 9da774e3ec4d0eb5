/*
 * Drain: `drain`: GPUs that get no new work, that leave the bus, and that come back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/smi.h"

/* An address, as the driver writes it and as the interface takes it. */
static bool parse_address(const char *text, nvmlPciInfo_t *pci)
{
    unsigned int function;
    char more;

    *pci = (nvmlPciInfo_t){ 0 };
    if (sscanf(text, "%x:%x:%x.%x%c", &pci->domain, &pci->bus, &pci->device, &function, &more) != 4)
        return false;
    snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.%X", pci->domain, pci->bus & 0xff,
             pci->device & 0xff, function & 7);
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.%X", pci->domain & 0xffff,
             pci->bus & 0xff, pci->device & 0xff, function & 7);
    return true;
}

static const char *state_words(nvmlEnableState_t state)
{
    return state == NVML_FEATURE_ENABLED ? "draining" : "not draining";
}

static int failed(const char *what, const nvmlPciInfo_t *pci, nvmlReturn_t result)
{
    printf("Failed to %s GPU %s: %s\n", what, pci->busId, api_error(result));
    return exit_status(result);
}

static int query(nvmlPciInfo_t *pci)
{
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    nvmlReturn_t result = ASK(DeviceQueryDrainState, pci, &state);

    if (result != NVML_SUCCESS)
        return failed("query the drain state of", pci, result);
    printf("The current drain state of GPU %s is: %s.\n", pci->busId, state_words(state));
    return 0;
}

static int modify(nvmlPciInfo_t *pci, const char *text)
{
    nvmlReturn_t result;
    long state;

    if (!arguments_number(text, 0, 1, &state))
        return complain(
            "drain: '%s' is not a state: it should be 0 (not draining) or 1 (draining).", text);
    result = ASK(DeviceModifyDrainState, pci, (nvmlEnableState_t)state);
    if (result != NVML_SUCCESS)
        return failed("set the drain state of", pci, result);
    printf("Successfully set GPU %s drain state to: %s.\n", pci->busId,
           state_words((nvmlEnableState_t)state));
    return 0;
}

static int take_away(nvmlPciInfo_t *pci)
{
    enum { KEEP_GPU = 0, LINK_KEEP = 0 };
    nvmlReturn_t result = ASK(DeviceRemoveGpu_v2, pci, KEEP_GPU, LINK_KEEP);

    if (result != NVML_SUCCESS)
        return failed("remove", pci, result);
    printf("Successfully removed GPU %s.\n", pci->busId);
    return 0;
}

static int discover(nvmlPciInfo_t *pci)
{
    nvmlReturn_t result = ASK(DeviceDiscoverGpus, pci);

    if (result != NVML_SUCCESS)
        return failed("discover", pci, result);
    puts("Discovery completed successfully. Any discovered GPUs will now appear in the enumeration "
         "list and device count.");
    return 0;
}

int drain(int argc, char **argv)
{
    const char *address = NULL, *state = NULL;
    bool asks = false, removes = false, discovers = false;
    const struct argument arguments[] = {
        { "-p", "--pciid", NULL, &address, "Which GPU: domain:bus:device.function." },
        { "-m", "--modify", NULL, &state, "0: it takes work again; 1: it gets no more." },
        { "-q", "--query", &asks, NULL, "Which of the two it is." },
        { "-r", "--remove", &removes, NULL, "Takes it off the bus, when nobody uses it." },
        { "-d", "--discover", &discovers, NULL, "Finds it again; without -p all that are away." },
        { 0 },
    };
    int status = arguments_parse(arguments, "drain", argc, argv);
    nvmlPciInfo_t pci = { 0 };

    if (status != 0)
        return status < 0 ? 0 : status;
    if ((state != NULL) + asks + removes + discovers != 1 || (!address && !discovers))
        return complain("drain takes -p and one of -m, -q, -r and -d. Please run 'nvidia-smi drain "
                        "-h' for help.");
    if (address && !parse_address(address, &pci))
        return complain("drain: '%s' is not an address: it should be domain:bus:device.function.",
                        address);
    status = library_start();
    if (status != 0)
        return status;
    return state     ? modify(&pci, state)
           : asks    ? query(&pci)
           : removes ? take_away(&pci)
                     : discover(&pci);
}
