/*
 * Nodes of k8s/: labels, and the topology, which reads back as the same node.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/tree.h"

#define UUID "GPU-edfee158-11c1-52b8-0517-92f30e7fac88"

static void test_labels(void)
{
    mount_node("{driver: {version: 550.163.01, cuda: '12.4'}, gpus: {count: 4, model: L40S}}\n");
    is_str(cat("k8s/labels"),
           "nvidia.com/gpu.present=true\n"
           "nvidia.com/gpu.count=4\n"
           "nvidia.com/gpu.product=NVIDIA-L40S\n"
           "nvidia.com/gpu.memory=46068\n"
           "nvidia.com/gpu.replicas=1\n"
           "nvidia.com/gpu.sharing-strategy=none\n"
           "nvidia.com/gpu.family=ada-lovelace\n"
           "nvidia.com/gpu.compute.major=8\n"
           "nvidia.com/gpu.compute.minor=9\n"
           "nvidia.com/gpu.mode=compute\n"
           "nvidia.com/cuda.driver.major=550\n"
           "nvidia.com/cuda.driver.minor=163\n"
           "nvidia.com/cuda.driver.rev=01\n"
           "nvidia.com/cuda.driver-version.major=550\n"
           "nvidia.com/cuda.driver-version.minor=163\n"
           "nvidia.com/cuda.driver-version.revision=01\n"
           "nvidia.com/cuda.runtime.major=12\n"
           "nvidia.com/cuda.runtime.minor=4\n"
           "nvidia.com/cuda.runtime-version.major=12\n"
           "nvidia.com/cuda.runtime-version.minor=4\n"
           "nvidia.com/cuda.driver-version.full=550.163.01\n"
           "nvidia.com/cuda.runtime-version.full=12.4\n"
           "nvidia.com/mig.strategy=none\n"
           "nvidia.com/mig.capable=false\n"
           "nvidia.com/mps.capable=false\n"
           "nvidia.com/vgpu.present=false\n",
           "labels");
    mount_node("{driver: {version: '550.54'}, mig_strategy: mixed, gpus: [{model: A100-SXM4-40GB},"
               " {model: RTX-4090}]}\n");
    contains(cat("k8s/labels"), "nvidia.com/cuda.driver.rev=\n", "a version without a revision");
    contains(cat("k8s/labels"), "nvidia.com/mig.strategy=mixed\nnvidia.com/mig.capable=true\n",
             "MIG");
    contains(cat("k8s/labels"), "nvidia.com/gpu.mode=unknown\n", "boards of two kinds");
}

static void test_mig_labels(void)
{
    static const char cut_up[] = "nvidia.com/gpu.count=3\n"
                                 "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-2g.10gb\n"
                                 "nvidia.com/gpu.memory=9856\n"
                                 "nvidia.com/gpu.replicas=1\n"
                                 "nvidia.com/gpu.sharing-strategy=none\n"
                                 "nvidia.com/gpu.multiprocessors=28\n"
                                 "nvidia.com/gpu.slices.gi=2\n"
                                 "nvidia.com/gpu.slices.ci=2\n"
                                 "nvidia.com/gpu.engines.copy=2\n"
                                 "nvidia.com/gpu.engines.decoder=1\n";
    static const char invalid[] = "nvidia.com/gpu.count=0\n"
                                  "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-INVALID\n"
                                  "nvidia.com/gpu.memory=0\n"
                                  "nvidia.com/gpu.replicas=0\n"
                                  "nvidia.com/gpu.sharing-strategy=\n";

    mount_node("{mig_strategy: single, gpus: {count: 2, mig_mode: true}}\n");
    contains(cat("k8s/labels"), invalid, "single: no MIG device is not what it asks for");
    sim_mig(sim, 0, "create 2g.10gb", NULL);
    contains(cat("k8s/labels"), invalid, "nor is a GPU without one");
    sim_mig(sim, 1, "create 2g.10gb", NULL);
    sim_mig(sim, 1, "create 2g.10gb", NULL);
    contains(cat("k8s/labels"), cut_up, "MIG devices are the node's GPUs");
    sim_mig(sim, 1, "create 1g.5gb", NULL);
    contains(cat("k8s/labels"), invalid, "but not when there are two kinds");

    mount_node("{mig_strategy: mixed, gpus: {count: 2, mig_mode: true}}\n");
    contains(cat("k8s/labels"), "nvidia.com/gpu.replicas=0\n", "mixed: GPUs that are cut up");
    sim_mig(sim, 0, "create 1g.5gb+me", NULL);
    sim_mig(sim, 1, "create-gi 3g.20gb", NULL);
    sim_mig(sim, 1, "create-ci 1 1", NULL);
    sim_mig(sim, 1, "create-ci 1 1", NULL);
    contains(cat("k8s/labels"), "nvidia.com/mig-1g.5gb.me.count=1\n", "each kind by its name");
    contains(cat("k8s/labels"),
             "nvidia.com/mig-1c.3g.20gb.count=2\n"
             "nvidia.com/mig-1c.3g.20gb.product=NVIDIA-A100-SXM4-40GB-MIG-1c.3g.20gb\n",
             "with its count");
    contains(cat("k8s/labels"),
             "nvidia.com/mig-1c.3g.20gb.multiprocessors=14\n"
             "nvidia.com/mig-1c.3g.20gb.slices.gi=3\n"
             "nvidia.com/mig-1c.3g.20gb.slices.ci=1\n",
             "and what one has");
}

static void test_topology(void)
{
    static const char one[] = "GPU-11111111-11c1-52b8-0517-92f30e7fac88";

    mount_node("node: node-a\nmig_strategy: single\n"
               "gpus: [{uuid: " UUID ", memory: 30GiB, model: A100-SXM4-40GB},"
               " {uuid: GPU-11111111-11c1-52b8-0517-92f30e7fac88, memory: 30GiB}]\n"
               "workloads:\n"
               "  - {name: a, devices: [0], activity: {utilization: 80}, memory: 5000MiB,\n"
               "     namespace: team-a, pod: 'true', container: main}\n");
    sim_run(sim, 5 * SEC);
    is_str(cat("k8s/topology.yaml"),
           "mig-strategy: single\n"
           "nodes:\n"
           "  node-a:\n"
           "    gpu-memory: 30720\n"
           "    gpu-product: NVIDIA-A100-SXM4-40GB\n"
           "    gpus:\n"
           "      - id: " UUID "\n"
           "        metrics:\n"
           "          metadata:\n"
           "            namespace: team-a\n"
           "            pod: \"true\"\n"
           "            container: main\n"
           "          utilization: 80\n"
           "          fb-used: 5000\n"
           "      - id: GPU-11111111-11c1-52b8-0517-92f30e7fac88\n"
           "        metrics:\n"
           "          utilization: 0\n"
           "          fb-used: 0\n",
           "the node and who uses it");
    sim_fault(sim, 1, "fallen_off_bus", NULL);
    contains(cat("k8s/topology.yaml"), "88\n        # has fallen off the bus\n", "a lost GPU");
    {
        char *yaml = strdup(text_str(&content));

        mount_node(yaml);
        free(yaml);
    }
    is_str(sim_world(sim)->node_plan.name, "node-a", "read back it is the same node");
    is_int(sim_world(sim)->node_plan.mig_strategy, MIG_STRATEGY_SINGLE, "with its strategy");
    is_int(sim_find_gpu(sim, UUID), 0, "the same first GPU");
    is_int(sim_find_gpu(sim, one), 1, "and second");
    is_int(world_gpu_plans(sim_world(sim))[0].memory_bytes, 30 * GIB, "with as much memory");
    sim_run(sim, SEC);
    is_int(node_parts(sim, 0, METRIC_UTILIZATION_GPU), 80000, "as busy as it was");
    is_int(node_parts(sim, 0, METRIC_MEMORY_USED), 5000 * MIB, "and as full");
    contains(cat("k8s/topology.yaml"), "            pod: \"true\"\n", "by the same pod");
    mount_node("gpus: []\n");
    {
        char *yaml = strdup(cat("k8s/topology.yaml"));

        mount_node(yaml);
        free(yaml);
    }
    is_int(sim_world(sim)->used[SECTION_GPUS], 0, "a node without GPUs as well");
}

int main(void)
{
    tree_up();
    test_labels();
    test_mig_labels();
    test_topology();
    tree_down();
    return tap_done();
}
