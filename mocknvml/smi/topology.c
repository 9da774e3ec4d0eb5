/*
 * Topology: `topo`: how GPUs reach each other, as matrices. Its single answers are in affinity.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "mocknvml/smi/arguments.h"
#include "mocknvml/smi/topology.h"

/* --- NVLinks ------------------------------------------------------------------------------------ */

/* The active links of a GPU, by the address of what is at their other end. */
struct ends {
    char bus_ids[NVML_NVLINK_MAX_LINKS][32];
    int count;
};

static void ends_get(struct gpu *gpu, struct ends *ends)
{
    ends->count = 0;
    for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
        nvmlEnableState_t active = NVML_FEATURE_DISABLED;
        nvmlPciInfo_t pci;

        if (ASK(DeviceGetNvLinkState, gpu->device, link, &active) != NVML_SUCCESS || !active ||
            ASK(DeviceGetNvLinkRemotePciInfo_v2, gpu->device, link, &pci) != NVML_SUCCESS)
            continue;
        snprintf(ends->bus_ids[ends->count++], sizeof(ends->bus_ids[0]), "%.31s", pci.busId);
    }
}

static int ends_at(const struct ends *ends, const char *bus_id)
{
    int count = 0;

    for (int i = 0; i < ends->count; i++)
        count += !strcasecmp(ends->bus_ids[i], bus_id);
    return count;
}

static bool is_gpu(const struct gpus *gpus, const char *bus_id)
{
    for (unsigned int i = 0; i < gpus->count; i++)
        if (!strcasecmp(gpus->items[i].bus_id, bus_id))
            return true;
    return false;
}

static int switch_links(const struct gpus *gpus, const struct ends *ends)
{
    int count = 0;

    for (int i = 0; i < ends->count; i++)
        count += !is_gpu(gpus, ends->bus_ids[i]);
    return count;
}

/* Links that lead from one to the other, or from both to switches. */
static int links_between(const struct gpus *gpus, const struct ends *ends, unsigned int one,
                         unsigned int other)
{
    int direct = ends_at(&ends[one], gpus->items[other].bus_id);
    int here = switch_links(gpus, &ends[one]), there = switch_links(gpus, &ends[other]);

    return direct ? direct : here < there ? here : there;
}

/* --- cells -------------------------------------------------------------------------------------- */

const struct path paths[PATH_COUNT] = {
    { NVML_TOPOLOGY_INTERNAL, "PSB", "a single PCIe switch on a dual GPU board" },
    { NVML_TOPOLOGY_SINGLE, "PIX", "a single PCIe switch" },
    { NVML_TOPOLOGY_MULTIPLE, "PXB", "multiple PCIe switches" },
    { NVML_TOPOLOGY_HOSTBRIDGE, "PHB", "a PCIe host bridge" },
    { NVML_TOPOLOGY_NODE, "NODE", "an on-CPU interconnect link between PCIe host bridges" },
    { NVML_TOPOLOGY_SYSTEM, "SYS", "an SMP interconnect link between NUMA nodes" },
};

const struct path *path_between(struct gpu *one, struct gpu *other)
{
    nvmlGpuTopologyLevel_t level;

    if (ASK(DeviceGetTopologyCommonAncestor, one->device, other->device, &level) != NVML_SUCCESS)
        return NULL;
    for (int i = 0; i < PATH_COUNT; i++)
        if (paths[i].level == level)
            return &paths[i];
    return NULL;
}

static const char *pcie_cell(struct gpu *one, struct gpu *other)
{
    const struct path *path = path_between(one, other);

    return path ? path->cell : "N/A";
}

/* The bits of a mask as "0-3,8". */
static void ranges(const unsigned long *mask, size_t words, char *text, size_t size)
{
    enum { BITS = 8 * sizeof(*mask) };
    size_t used = 0;

    snprintf(text, size, "N/A");
    for (size_t bit = 0; bit < words * BITS; bit++) {
        size_t first = bit;

        while (bit < words * BITS && mask[bit / BITS] >> bit % BITS & 1)
            bit++;
        if (bit == first)
            continue;
        used += (size_t)snprintf(text + used, used < size ? size - used : 0, "%s%zu",
                                 used ? "," : "", first);
        if (bit - first > 1)
            used += (size_t)snprintf(text + used, used < size ? size - used : 0, "-%zu", bit - 1);
        if (used >= size)
            return;
    }
}

void affinity(struct gpu *gpu, bool of_memory, char *text, size_t size)
{
    enum { WORDS = 64 };
    unsigned long mask[WORDS] = { 0 };
    nvmlReturn_t result = of_memory ? ASK(DeviceGetMemoryAffinity, gpu->device, WORDS, mask,
                                          NVML_AFFINITY_SCOPE_NODE)
                                    : ASK(DeviceGetCpuAffinity, gpu->device, WORDS, mask);

    if (result == NVML_SUCCESS)
        ranges(mask, WORDS, text, size);
    else
        snprintf(text, size, "N/A");
}

/* --- matrices ----------------------------------------------------------------------------------- */

static void matrix_row(const struct gpus *gpus, const struct ends *ends, unsigned int row)
{
    struct gpu *gpu = &gpus->items[row];
    char cpus[1024], nodes[256];
    unsigned int node = 0;

    printf("GPU%u", gpu->index);
    for (unsigned int column = 0; column < gpus->count; column++) {
        int count = ends && column != row ? links_between(gpus, ends, row, column) : 0;

        if (column == row)
            printf("\t X ");
        else if (count)
            printf("\tNV%d", count);
        else
            printf("\t%s", pcie_cell(gpu, &gpus->items[column]));
    }
    affinity(gpu, false, cpus, sizeof(cpus));
    affinity(gpu, true, nodes, sizeof(nodes));
    printf("\t%s\t%s\t\t", cpus, nodes);
    if (ASK(DeviceGetNumaNodeId, gpu->device, &node) == NVML_SUCCESS)
        printf("%u\n", node);
    else
        printf("N/A\n");
}

static int matrix(const struct gpus *gpus, bool with_links)
{
    struct ends *ends = calloc(gpus->count, sizeof(*ends));

    if (!ends)
        return exit_status(NVML_ERROR_MEMORY);
    printf("\t\033[4m");
    for (unsigned int i = 0; i < gpus->count; i++) {
        if (with_links)
            ends_get(&gpus->items[i], &ends[i]);
        printf("GPU%u\t", gpus->items[i].index);
    }
    printf("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\033[0m\n");
    for (unsigned int i = 0; i < gpus->count; i++)
        matrix_row(gpus, with_links ? ends : NULL, i);
    puts(
        "\nLegend:\n\n"
        "  X    = Self\n"
        "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., "
        "QPI/UPI)\n"
        "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within "
        "a NUMA node\n"
        "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
        "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)\n"
        "  PIX  = Connection traversing at most a single PCIe bridge");
    if (with_links)
        puts("  NV#  = Connection traversing a bonded set of # NVLinks");
    free(ends);
    return 0;
}

static const char *p2p_status(struct gpu *one, struct gpu *other, nvmlGpuP2PCapsIndex_t what)
{
    static const char *const words[] = { "OK", "CNS", "GNS", "TNS", "DR", "NS", "U" };
    nvmlGpuP2PStatus_t status = NVML_P2P_STATUS_UNKNOWN;

    if (ASK(DeviceGetP2PStatus, one->device, other->device, what, &status) != NVML_SUCCESS ||
        status > NVML_P2P_STATUS_UNKNOWN)
        status = NVML_P2P_STATUS_UNKNOWN;
    return words[status];
}

static int p2p_matrix(const struct gpus *gpus, const char *what)
{
    static const char letters[] = "rwnap"; /* in the order of nvmlGpuP2PCapsIndex_t */
    const char *letter = strlen(what) == 1 ? strchr(letters, *what) : NULL;

    if (!letter)
        return complain(
            "topo: '%s' is not a capability: it should be one of r (read), w (write), n (NVLink), "
            "a (atomics), p (PCI).",
            what);
    for (unsigned int i = 0; i < gpus->count; i++)
        printf("%s\tGPU%u", i ? "" : " ", gpus->items[i].index);
    printf("\t\n");
    for (unsigned int row = 0; row < gpus->count; row++) {
        printf(" GPU%u", gpus->items[row].index);
        for (unsigned int column = 0; column < gpus->count; column++)
            printf("\t%s", row == column ? "X"
                                         : p2p_status(&gpus->items[row], &gpus->items[column],
                                                      (nvmlGpuP2PCapsIndex_t)(letter - letters)));
        printf("\t\n");
    }
    puts("\nLegend:\n\n"
         "  X    = Self\n"
         "  OK   = Status Ok\n"
         "  CNS  = Chipset not supported\n"
         "  GNS  = GPU not supported\n"
         "  TNS  = Topology not supported\n"
         "  NS   = Not supported\n"
         "  DR   = Disabled by Regkey\n"
         "  U    = Unknown");
    return 0;
}

struct request {
    const char *ids;
    bool links, pcie;                      /* -m, -mp */
    const char *capability;                /* -p2p */
    const char *processor, *nearest;       /* -c, -n */
    bool path;                             /* -p */
    bool near_processor, near_memory, own; /* -C, -M, -gnid: any of them together */
};

/* How many different things were asked for. */
static int asked(const struct request *r)
{
    return r->links + r->pcie + (r->capability != NULL) + (r->processor != NULL) +
           (r->nearest != NULL) + r->path + (r->near_processor || r->near_memory || r->own);
}

static int answer(const struct request *r, const struct gpus *gpus)
{
    if (r->capability)
        return p2p_matrix(gpus, r->capability);
    if (r->processor)
        return near_processor(r->processor);
    if (r->nearest)
        return nearest_gpus(gpus, r->nearest);
    if (r->path)
        return path_of_two(gpus);
    if (r->links || r->pcie)
        return matrix(gpus, r->links);
    return closest_nodes(gpus, r->near_processor, r->near_memory, r->own);
}

int topology(int argc, char **argv)
{
    struct request r = { 0 };
    const struct argument arguments[] = {
        { "-m", "--matrix", &r.links, NULL,
          "How each GPU reaches each other, and the nearest processors." },
        { "-mp", "--matrix_pci", &r.pcie, NULL, "The same over PCIe alone." },
        { "-p2p", "--p2pstatus", NULL, &r.capability,
          "Whether GPUs reach each other's memory: r read, w write, n NVLink, a atomics, p PCI." },
        { "-c", "--cpu", NULL, &r.processor, "The GPUs near a processor." },
        { "-n", "--nearest_gpus", NULL, &r.nearest,
          "The GPUs that one reaches by way of 0 its board's switch, 1 a switch, 2 switches, 3 a "
          "host bridge, 4 host bridges, 5 NUMA nodes." },
        { "-p", "--gpu_path", &r.path, NULL, "How two GPUs reach each other over PCIe." },
        { NULL, "-C", &r.near_processor, NULL, "The NUMA node of the nearest processors." },
        { NULL, "-M", &r.near_memory, NULL, "The nearest NUMA node of memory." },
        { NULL, "-gnid", &r.own, NULL, "The NUMA node that the GPU itself is." },
        { "-i", "--id", NULL, &r.ids, "Indices, UUIDs or bus ids, separated by commas." },
        { 0 },
    };
    int status = arguments_parse(arguments, "topo", argc, argv);
    struct gpus gpus = { 0 };

    if (status != 0)
        return status < 0 ? 0 : status;
    if (asked(&r) != 1)
        return complain("topo takes one of -m, -mp, -p2p, -c, -n, -p, or any of -C, -M and -gnid. "
                        "Please run 'nvidia-smi topo -h' for help.");
    status = gpus_start(&gpus, r.ids);
    if (status == 0)
        status = answer(&r, &gpus);
    gpus_close(&gpus);
    return status;
}
