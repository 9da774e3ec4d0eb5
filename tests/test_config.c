/*
 * Configurations: what every key means, where GPUs come from, and that what is printed reads back.
 * What is refused stands in tests/bad.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/config.h"
#include "sim/config_resolve.h"
#include "sim/config_shapes.h"
#include "sim/library.h"
#include "tests/tap.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define S NS_PER_S

/* A configuration with its GPUs worked out. */
struct node {
    struct config cfg;
    struct gpu_entry *gpus;
    int count;
    struct why why;
    int r;
};

static void read_node(struct node *n, const char *text, const struct config_options *options)
{
    *n = (struct node){ 0 };
    n->r = config_parse(&n->cfg, text, strlen(text), options, &n->why);
    if (n->r == 0)
        n->r = config_resolve(&n->cfg, &n->gpus, &n->count, &n->why);
}

static void release(struct node *n)
{
    free(n->gpus);
    config_release(&n->cfg);
    why_release(&n->why);
}

/* For texts that are right; what follows makes no sense otherwise. */
static struct node node_of(const char *text)
{
    struct node n;

    read_node(&n, text, NULL);
    if (n.r < 0)
        bail("%s", why_text(&n.why));
    return n;
}

static const char *profile_of(const struct node *n, int gpu)
{
    return n->cfg.profiles.profiles[n->gpus[gpu].profile].name;
}

static const struct gpu_entry *gpu(const struct node *n, int i)
{
    if (i >= n->count)
        bail("there is no GPU %d of %d", i, n->count);
    return &n->gpus[i];
}

/* --- GPUs ------------------------------------------------------------------------------------ */

static void is_the_default(const char *text, const char *name)
{
    struct node n = node_of(text);

    is_int(n.count, 8, "%s: eight GPUs", name);
    for (int i = 0; i < n.count; i++)
        if (strcmp(n.gpus[i].model->name, "A100-SXM4-40GB") || n.gpus[i].minor != i)
            ok(false, "%s: GPU %d is an A100-SXM4-40GB in its place", name, i);
    is_str(profile_of(&n, 7), "idle", "%s: all idle", name);
    is_str(n.cfg.node, "localhost", "%s: on this host", name);
    release(&n);
}

static void test_defaults(void)
{
    struct node n;

    is_the_default("", "nothing");
    is_the_default("# nothing but a comment\n", "a comment");
    is_the_default("---\n", "an empty document");
    is_the_default("{}", "an empty mapping");
    is_the_default("driver:\nnuma:\n", "empty sections");
    n = node_of("");
    is_int(n.cfg.step_ns, 100 * NS_PER_MS, "a step is 100 ms");
    is_int(n.cfg.update_interval_ns, 30 * S, "profiles read every 30 s");
    is_real(n.cfg.speed, 1, 0, "in real time");
    is_int(n.cfg.seed, 1, "from seed 1");
    is_int(gpu(&n, 0)->memory_bytes, 40960 * MIB, "memory is the model's");
    is_int(gpu(&n, 0)->power_limit_mw, 400000, "so is the power limit");
    is_int(gpu(&n, 0)->spec.persistence_mode, 1, "persistence mode is on");
    release(&n);
    n = node_of("gpus: []");
    is_int(n.count, 0, "an empty list is a node without GPUs");
    release(&n);
}

static void test_lists(void)
{
    struct node n = node_of("gpus:\n"
                            "  - model: T4\n"
                            "  - {count: 2, model: nvidia l40s, power_limit: 300W, memory: 40GiB}\n"
                            "  - model: Tesla_K80\n"
                            "    minor: 9\n"
                            "    module_id: 5\n"
                            "    serial: \"0123456789\"\n"
                            "    bus_id: 00000001:0A:1f.7\n"
                            "    uuid: GPU-8FC73FBD-91F0-697E-57EF-FC978BD54AF1\n"
                            "  -\n");

    is_int(n.count, 5, "a list, one of which counts twice");
    is_str(gpu(&n, 0)->model->name, "T4", "the first");
    is_str(gpu(&n, 2)->model->name, "L40S", "a product in other letters is found, too");
    is_int(gpu(&n, 2)->power_limit_mw, 300000, "… with its own power limit");
    is_int(gpu(&n, 1)->memory_bytes, 40 * GIB, "… and memory");
    is_str(gpu(&n, 3)->model->name, "Tesla-K80", "so is a label");
    is_int(gpu(&n, 3)->minor, 9, "a minor number of its own");
    is_int(gpu(&n, 3)->module_id, 5, "a module id of its own");
    is_str(gpu(&n, 3)->serial, "0123456789", "a serial number of its own");
    is_str(gpu(&n, 3)->uuid, "GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1", "a UUID in small letters");
    ok(gpu(&n, 3)->domain == 1 && gpu(&n, 3)->bus == 10 && gpu(&n, 3)->device == 31 &&
           gpu(&n, 3)->function == 7,
       "a bus id of its own");
    is_str(gpu(&n, 4)->model->name, "A100-SXM4-40GB", "one that says nothing is the default");
    is_int(gpu(&n, 4)->minor, 4, "… in its place");
    release(&n);

    n = node_of("gpus: {count: 3, model: T4, minor: 10, module_id: 20}");
    is_int(n.count, 3, "count and model");
    is_int(gpu(&n, 2)->minor, 12, "minor numbers count up from the first");
    is_int(gpu(&n, 2)->module_id, 22, "so do module ids");
    release(&n);
    n = node_of("gpus: {count: 0}");
    is_int(n.count, 0, "none");
    release(&n);
}

static void test_gpu_keys(void)
{
    struct node n = node_of("gpus:\n"
                            "  model: A100-SXM4-40GB\n"
                            "  persistence_mode: no\n"
                            "  compute_mode: exclusive_process\n"
                            "  ecc_mode: off\n"
                            "  mig_mode: true\n"
                            "  cooling: 1.25\n"
                            "  numa_node: -1\n"
                            "  metrics: {temperature_gpu_c: 60, memory_used_bytes: 50%}\n"
                            "  workload: {activity: 80:5:1m, memory: 1GiB, pod: p}\n");
    const struct gpu_spec *spec = &gpu(&n, 0)->spec;
    const struct signal_spec *pins = spec->metrics.items;

    is_int(spec->persistence_mode, 0, "persistence mode");
    is_int(spec->compute_mode, COMPUTE_EXCLUSIVE_PROCESS, "compute mode");
    is_int(spec->ecc_mode, 0, "ECC");
    is_int(spec->mig_mode, 1, "MIG");
    is_real(spec->cooling, 1.25, 0, "cooling");
    is_int(gpu(&n, 0)->numa_node, -1, "no NUMA node");
    is_int(spec->metrics.count, 2, "two pinned metrics");
    ok(pins[1].signal.target == METRIC_MEMORY_USED && pins[1].signal.share, "… one as a share");
    is_str(spec->workload.pod, "p", "a load of its own");
    is_int(spec->workload.repeat, 0, "… that goes on for ever");
    release(&n);
}

static void test_overrides(void)
{
    struct node n = node_of("gpus: {count: 4, model: T4}\n");
    struct text text = TEXT_INIT;

    text_addf(&text,
              "gpus: {count: 4, model: T4, workload: {activity: 10, memory: 1GiB}}\n"
              "overrides:\n"
              "  1: {profile: wave, power_limit: 65W}\n"
              "  %s: {model: L4, cooling: 2}\n"
              "  2: {profile: spike, workload: {memory: 3GiB}}\n",
              n.gpus[2].uuid);
    release(&n);
    n = node_of(text_str(&text));
    is_str(profile_of(&n, 0), "idle", "GPU 0 is like the others");
    is_str(profile_of(&n, 1), "wave", "GPU 1 has another profile");
    is_int(gpu(&n, 1)->power_limit_mw, 65000, "… and power limit");
    is_str(gpu(&n, 2)->model->name, "L4", "GPU 2, by its UUID, is another model");
    is_int(gpu(&n, 2)->memory_bytes, gpu(&n, 2)->model->memory.total_bytes, "… with its memory");
    is_str(profile_of(&n, 2), "spike", "… and a second override adds to it");
    is_real(gpu(&n, 2)->spec.cooling, 2, 0, "… without taking away");
    is_int(gpu(&n, 2)->spec.workload.activity.count, 1, "… nor from what a workload said before");
    is_real(((struct signal_spec *)gpu(&n, 2)->spec.workload.memory.items)->signal.p[0],
            3 * (double)GIB, 0, "… but for the memory that it gives");
    is_str(gpu(&n, 3)->model->name, "T4", "GPU 3 is like the others");
    release(&n);
    text_release(&text);

    n = node_of("overrides: {1: {uuid: GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1, minor: 100}}");
    is_str(gpu(&n, 1)->uuid, "GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1", "another UUID");
    is_int(gpu(&n, 1)->minor, 100, "another minor number");
    release(&n);
}

static void profiles_are(const char *text, const char *want, const char *name)
{
    struct node n = node_of(text);
    struct text got = TEXT_INIT;

    for (int i = 0; i < n.count; i++)
        text_addf(&got, "%s%s", i ? " " : "", profile_of(&n, i));
    is_str(text_str(&got), want, "%s", name);
    text_release(&got);
    release(&n);
}

static void test_profiles(void)
{
    profiles_are("gpus: {count: 2}\nprofile: wave", "wave wave", "one for all");
    profiles_are("gpus: {count: 9}\nprofile: cycle",
                 "static stable spike wave degrading faulty chaos static stable", "cycle");
    profiles_are("gpus: {count: 5}\nprofile: [static, chaos]", "static chaos static chaos static",
                 "a list, in turn");
    profiles_are(
        "gpus:\n  - {count: 3, profile: [wave, spike]}\n  - count: 2\nprofile: [idle, static]",
        "wave spike wave static idle", "a list of its own");
    profiles_are("gpus: {count: 3, profile: cycle}", "static stable spike", "a cycle of its own");
    profiles_are("gpus: {count: 3}\nprofile: chaos\noverrides: {1: {profile: [idle]}}",
                 "chaos idle chaos", "an override");
}

/* UUIDs belong to a node and an index: a node that grows keeps those it has. */
static void test_stable_identity(void)
{
    struct node few = node_of("gpus: {count: 2, model: T4}");
    struct node many = node_of("gpus: {count: 64, model: H100-80GB-HBM3}\nseed: 99\nprofile: wave");
    struct node other = node_of("gpus: {count: 2, model: T4}\nnode: elsewhere");
    bool same = false;

    is_str(many.gpus[0].uuid, few.gpus[0].uuid, "GPU 0 is the same GPU on a larger node");
    is_str(many.gpus[1].uuid, few.gpus[1].uuid, "GPU 1, too");
    is_str(many.gpus[1].serial, few.gpus[1].serial, "… by its serial number as well");
    ok(strcmp(other.gpus[0].uuid, few.gpus[0].uuid), "another node has another GPU 0");
    ok(uuid_ok(few.gpus[0].uuid), "a dealt UUID looks like one: %s", few.gpus[0].uuid);
    for (int i = 0; i < many.count; i++)
        for (int j = 0; j < i; j++)
            same |= !strcmp(many.gpus[i].uuid, many.gpus[j].uuid);
    ok(!same, "no two are the same");
    release(&few);
    release(&many);
    release(&other);
}

/* --- the machine ----------------------------------------------------------------------------- */

static void test_driver(void)
{
    struct node n = node_of("");

    is_str(n.cfg.driver.version, "550.163.01", "a driver");
    is_str(n.cfg.driver.cuda, "12.4", "… with its CUDA version");
    is_str(n.cfg.driver.nvml, "12.550.163.01", "… and NVML's, which follows from them");
    release(&n);
    n = node_of("driver: {version: 570.148.08, cuda: 13.0, kernel_module: proprietary}");
    is_str(n.cfg.driver.nvml, "13.570.148.08", "another driver has another NVML");
    is_int(n.cfg.driver.kernel_module, MODULE_PROPRIETARY, "… and kernel module");
    release(&n);
    n = node_of("driver: {nvml: 12.535.104}");
    is_str(n.cfg.driver.nvml, "12.535.104", "what is said stands");
    release(&n);
}

static void test_pci(void)
{
    struct node n = node_of("gpus: {count: 16, model: T4}");

    ok(gpu(&n, 0)->domain == 0 && gpu(&n, 0)->bus == 0x06, "the first bus is 06");
    is_int(gpu(&n, 1)->bus, 0x17, "the next is 0x11 further");
    ok(gpu(&n, 15)->domain == 1 && gpu(&n, 15)->bus == 0x06,
       "a full domain is followed by another");
    release(&n);
    n = node_of("gpus: {count: 3}\npci: {domain: 0x10, first_bus: 0xfe, bus_step: 1}");
    ok(gpu(&n, 0)->domain == 0x10 && gpu(&n, 0)->bus == 0xfe, "what is said stands");
    ok(gpu(&n, 2)->domain == 0x11 && gpu(&n, 2)->bus == 0xfe, "… up to the last bus");
    release(&n);
}

static void test_numa(void)
{
    struct node n = node_of("gpus: {count: 8}\nnuma: {nodes: 2}\noverrides: {7: {numa_node: 0}}");

    ok(gpu(&n, 3)->numa_node == 0 && gpu(&n, 4)->numa_node == 1, "GPUs are dealt out evenly");
    is_int(gpu(&n, 7)->numa_node, 0, "… unless they say otherwise");
    release(&n);
    n = node_of("numa: {cpus: [\"0-31,64-95\", 32-63]}");
    is_int(n.cfg.numa.nodes, 2, "lists of CPUs say how many nodes there are");
    is_str(((struct cpu_list *)n.cfg.numa.cpus.items)[0].text, "0-31,64-95", "… and which CPUs");
    release(&n);
}

static void test_links_and_access(void)
{
    struct node n = node_of("nvlink: {links: [{from: 0, to: 1, count: 12}, {from: 2, to: 3, count: "
                            "1}]}\n"
                            "access: {dev: null, dev_mode: 0600, control_mode: \"0660\", "
                            "workloads_mode: 1777, uid: 1000, gid: 4294967294}\n");
    const struct nvlink_pair *links = n.cfg.nvlink.links.items;

    is_int(n.cfg.nvlink.links.count, 2, "links one by one");
    ok(links[0].from == 0 && links[0].to == 1 && links[0].count == 12, "… as they are given");
    is_int(n.cfg.access.dev, DEV_NULL, "a plain null is the kind of device node");
    is_int(n.cfg.access.dev_mode, 0600, "permissions are octal");
    is_int(n.cfg.access.control_mode, 0660, "… in quotes as well");
    is_int(n.cfg.access.workloads_mode, 01777, "… and without a leading zero");
    is_int(n.cfg.access.uid, 1000, "an owner");
    is_int(n.cfg.access.gid, INT64_C(4294967294), "a group");
    release(&n);
    n = node_of("nvlink: {topology: ring}");
    is_int(n.cfg.nvlink.topology, NVLINK_RING, "a topology");
    is_int(n.cfg.access.dev, DEV_AUTO, "device nodes as the user allows");
    is_int(n.cfg.access.workloads_mode, 01777, "workloads are open to all");
    release(&n);
}

static void test_workloads_and_faults(void)
{
    struct node n = node_of("workloads:\n"
                            "  - {name: a, devices: [0, 0000:17:00.0], activity: 80, repeat: 1}\n"
                            "  - activity: [{time: 1m, utilization: 5}]\n"
                            "faults:\n"
                            "  - {at: 10s, gpu: all, fault: thermal 2 for 30s, every: 1m}\n"
                            "  - {gpu: 3, fault: hang, for: 5s}\n");
    const struct workload_spec *workloads = n.cfg.workloads.items;
    const struct fault_spec *faults = n.cfg.faults.items;

    is_int(n.cfg.workloads.count, 2, "two workloads");
    is_str(workloads[0].name, "a", "one has a name");
    is_int(workloads[0].devices.count, 2, "… and two GPUs");
    is_str(workloads[1].name, "", "one has none");
    is_int(workloads[1].repeat, 1, "… and is played once");
    is_int(faults[0].at_ns, 10 * S, "a fault has its time");
    is_str(faults[0].gpu.text, "all", "… its GPUs");
    is_int(faults[0].for_ns, 30 * S, "… a duration");
    is_int(faults[0].every_ns, 60 * S, "… and comes again");
    is_int(faults[1].for_ns, 5 * S, "a duration may have its own key");
    is_int(faults[1].at_ns, 0, "without a time it is at once");
    release(&n);
}

static void test_physics(void)
{
    struct physics defaults;
    struct node n = node_of("physics: {ambient: -5C, power_noise: 0, pcie_idle: 2MB/s, "
                            "idle_delay: 250ms, thermal_gain_per_c: 1e-3}");

    physics_init(&defaults);
    is_int(n.cfg.physics.ambient_mc, -5000, "ambient");
    is_real(n.cfg.physics.power_noise, 0, 0, "noise");
    is_int(n.cfg.physics.pcie_idle_bytes_per_second, 2000000, "idle traffic");
    is_int(n.cfg.physics.idle_delay_ns, 250 * NS_PER_MS, "a delay");
    is_real(n.cfg.physics.thermal_gain_per_c, 0.001, 0, "a gain");
    is_real(n.cfg.physics.power_weight_sm, defaults.power_weight_sm, 0, "the rest is as it was");
    release(&n);
}

/* --- the form with nodes --------------------------------------------------------------------- */

static const char issue_text[] = "mig-strategy: mixed\n"
                                 "nodes:\n"
                                 "  node-a:\n"
                                 "    gpu-memory: 11441\n"
                                 "    gpu-product: Tesla-K80\n"
                                 "    gpus:\n"
                                 "      - id: GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1\n"
                                 "        metrics:\n"
                                 "          metadata: {namespace: project-a, pod: pod, container: "
                                 "container}\n"
                                 "          utilization: 10\n"
                                 "          fb-used: 5000\n";

static void is_the_issues_node(const struct node *n)
{
    const struct workload_spec *w = &gpu(n, 0)->spec.workload;
    const struct phase_spec *phases = w->activity.items;
    const struct signal_spec *memory = w->memory.items, *busy = phases->signals.items;

    is_str(n->cfg.node, "node-a", "the node has its name");
    is_int(n->cfg.mig_strategy, MIG_STRATEGY_MIXED, "the strategy is read");
    is_int(n->count, 1, "it has one GPU");
    is_str(gpu(n, 0)->model->name, "Tesla-K80", "… a K80");
    is_str(gpu(n, 0)->uuid, "GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1", "… with that UUID");
    is_int(gpu(n, 0)->memory_bytes, 11441 * MIB, "… and 11441 MiB");
    is_str(w->namespace, "project-a", "its load has a namespace");
    is_str(w->pod, "pod", "… a pod");
    is_str(w->container, "container", "… and a container");
    is_int(w->activity.count, 1, "the load is one phase");
    is_int(phases[0].time_ns, PHASE_FOREVER, "… without end");
    ok(busy->signal.target == CHANNEL_UTILIZATION && busy->signal.p[0] == 10e3, "… at 10 %%");
    is_real(memory->signal.p[0], 5000 * (double)MIB, 0, "… with 5000 MiB");
}

static void test_nodes(void)
{
    struct config_options named = { .node = "node-a" }, wrong = { .node = "node-c" };
    struct node n = node_of(issue_text);
    struct text several = TEXT_INIT;

    is_the_issues_node(&n);
    release(&n);

    text_addf(&several, "%s  node-b: {gpu-product: T4, gpu-count: 3}\n", issue_text);
    read_node(&n, text_str(&several), &named);
    is_the_issues_node(&n);
    release(&n);
    named.node = "node-b";
    read_node(&n, text_str(&several), &named);
    is_int(n.count, 3, "another node is picked by its name");
    is_int(gpu(&n, 0)->memory_bytes, gpu(&n, 0)->model->memory.total_bytes,
           "… whose memory is the model's");
    is_int(gpu(&n, 0)->spec.workload.activity.count, 0, "… and who has no load");
    release(&n);
    read_node(&n, text_str(&several), NULL);
    is_int(n.r, -EINVAL, "of several nodes one must be picked");
    is_str(why_text(&n.why),
           "config:2:1: nodes: there are 2 nodes, and none is picked by name; allowed: node-a, "
           "node-b",
           "… and the sentence lists them");
    release(&n);
    read_node(&n, text_str(&several), &wrong);
    is_int(n.r, -EINVAL, "one that is not there is refused");
    like(why_text(&n.why),
         "^config:2:1: nodes: there is no node 'node-c'; did you mean 'node-[ab]'",
         "… by its name");
    release(&n);
    text_add(&several, "node: node-b\n");
    read_node(&n, text_str(&several), NULL);
    is_str(n.cfg.node, "node-b", "the file itself may pick one");
    release(&n);
    text_release(&several);
}

static void test_node_names(void)
{
    struct config_options asked = { .node = "asked" }, bad = { .node = "../asked" };
    struct node n;

    read_node(&n, "", &asked);
    is_str(n.cfg.node, "asked", "a node is called as asked for");
    release(&n);
    read_node(&n, "node: written", &asked);
    is_str(n.cfg.node, "asked", "… whatever the file says");
    release(&n);
    read_node(&n, "node: written", NULL);
    is_str(n.cfg.node, "written", "… or else as the file says");
    release(&n);
    read_node(&n, "", &bad);
    is_int(n.r, -EINVAL, "a path is not a name");
    contains(why_text(&n.why), "'../asked' is not the name of a node; allowed: a host name",
             "… and the sentence says so");
    release(&n);
}

/* --- the environment ------------------------------------------------------------------------- */

static void with_environment(struct node *n, const char *text, char **environment)
{
    struct config_options options = { .environment = environment };

    read_node(n, text, &options);
}

static void gpus_with(const char *variable, const char *text, const char *want, const char *name)
{
    char *environment[] = { (char *)"PATH=/bin", (char *)variable, NULL };
    struct text got = TEXT_INIT;
    struct node n;

    with_environment(&n, text, environment);
    for (int i = 0; n.r == 0 && i < n.count; i++)
        text_addf(&got, "%s%s/%s", i ? " " : "", n.gpus[i].model->name, profile_of(&n, i));
    is_str(text_str(&got), want, "%s %s", name, why_text(&n.why));
    text_release(&got);
    release(&n);
}

static void test_environment(void)
{
    struct node n;
    char *several[] = { (char *)"NUM_FAKE_GPUS=3", (char *)"METRIC_PROFILE=wave",
                        (char *)"GPU_PROFILES=1:chaos", (char *)"METRIC_UPDATE_INTERVAL=10", NULL };

    gpus_with("NUM_FAKE_GPUS=2", "gpus: {count: 5, model: T4}", "T4/idle T4/idle", "fewer");
    gpus_with("NUM_FAKE_GPUS=3", "gpus: {count: 2, model: T4}", "T4/idle T4/idle T4/idle", "more");
    gpus_with("NUM_FAKE_GPUS=0", "", "", "none");
    gpus_with("NUM_FAKE_GPUS=2", "gpus: []", "A100-SXM4-40GB/idle A100-SXM4-40GB/idle",
              "some where there were none");
    gpus_with("NUM_FAKE_GPUS=3", "gpus: [{model: T4}, {count: 4, model: L4}]",
              "T4/idle L4/idle L4/idle", "a list cut in the middle");
    gpus_with("NUM_FAKE_GPUS=3",
              "gpus: [{model: T4, profile: wave, uuid: GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1}]",
              "T4/wave T4/idle T4/idle", "more like the last, but not the same one");
    gpus_with("NUM_FAKE_GPUS=", "gpus: {count: 1, model: T4}", "T4/idle", "an empty variable");
    gpus_with("NUM_FAKE_GPUS_=7", "gpus: {count: 1, model: T4}", "T4/idle", "another variable");
    gpus_with("METRIC_PROFILE=spike", "gpus: {count: 2, model: T4}\nprofile: wave",
              "T4/spike T4/spike", "one profile for all");
    gpus_with("METRIC_PROFILE=spike",
              "gpus: [{model: T4, profile: chaos}, {model: T4}]\noverrides: {1: {profile: wave}}",
              "T4/spike T4/spike", "… whatever the file says");
    gpus_with("METRIC_PROFILE=cycle", "gpus: {count: 2, model: T4}", "T4/static T4/stable",
              "cycle");
    gpus_with("GPU_PROFILES=static, spike", "gpus: {count: 3, model: T4}",
              "T4/static T4/spike T4/static", "a profile for each, in turn");
    gpus_with("GPU_PROFILES=1:wave,0:chaos", "gpus: {count: 3, model: T4}\nprofile: static",
              "T4/chaos T4/wave T4/static", "profiles for single GPUs");
    gpus_with("GPU_PROFILES=1:wave,static,spike", "gpus: {count: 4, model: T4}",
              "T4/static T4/wave T4/static T4/spike", "both");
    gpus_with("GPU_PROFILES=1:wave",
              "gpus: {count: 2, model: T4}\noverrides: {1: {profile: chaos}}", "T4/idle T4/wave",
              "one over an override");
    gpus_with("GPU_PROFILES=1:wave",
              "gpus: [{model: T4}, {model: T4, uuid: GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1}]\n"
              "overrides: {GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1: {profile: chaos, model: L4}}",
              "T4/idle L4/wave", "… by its UUID, too");

    with_environment(&n, "", several);
    is_int(n.count, 3, "all variables at once");
    ok(!strcmp(profile_of(&n, 0), "wave") && !strcmp(profile_of(&n, 1), "chaos"), "… do it all");
    is_int(n.cfg.update_interval_ns, 10 * S, "… seconds without a unit");
    release(&n);
    several[3] = (char *)"METRIC_UPDATE_INTERVAL=1m30s";
    with_environment(&n, "", several);
    is_int(n.cfg.update_interval_ns, 90 * S, "… or a time");
    release(&n);
}

static void refused_with(const char *variable, int error, const char *words)
{
    char *environment[] = { (char *)variable, NULL };
    struct node n;

    with_environment(&n, "gpus: {count: 2, model: T4}", environment);
    is_int(n.r, -error, "%s is refused", variable);
    contains(why_text(&n.why), words, "… and the sentence says why");
    release(&n);
}

static void test_bad_environment(void)
{
    refused_with("NUM_FAKE_GPUS=many", EINVAL,
                 "environment: NUM_FAKE_GPUS: 'many' is not a number of GPUs; allowed: 0 to 4096");
    refused_with("NUM_FAKE_GPUS=-1", ERANGE, "allowed: 0 to 4096");
    refused_with("NUM_FAKE_GPUS=4097", ERANGE, "allowed: 0 to 4096");
    refused_with("NUM_FAKE_GPUS=99999999999999999999", ERANGE, "allowed: 0 to 4096");
    refused_with("NUM_FAKE_GPUS= 4", EINVAL, "allowed: 0 to 4096");
    refused_with("METRIC_PROFILE=wvae", EINVAL,
                 "environment: METRIC_PROFILE: 'wvae' is not a profile; did you mean 'wave'?");
    refused_with("METRIC_PROFILE=none", EINVAL, "static, wave, or cycle");
    refused_with("GPU_PROFILES=static,spke", EINVAL,
                 "environment: GPU_PROFILES: 'spke' is not a profile; did you mean 'spike'?");
    refused_with("GPU_PROFILES=static,,spike", EINVAL, "'' is not a profile");
    refused_with("GPU_PROFILES=cycle", EINVAL, "'cycle' is not a profile");
    refused_with("GPU_PROFILES=0:spke", EINVAL, "'spke' is not a profile");
    refused_with("GPU_PROFILES=x:static", EINVAL, "'x' is not the index of a GPU");
    refused_with("GPU_PROFILES=-1:static", EINVAL, "'-1' is not the index of a GPU");
    refused_with("GPU_PROFILES=5:static", EINVAL,
                 "environment: GPU_PROFILES: there is no GPU '5'; there are 2");
    refused_with("METRIC_UPDATE_INTERVAL=soon", EINVAL,
                 "environment: METRIC_UPDATE_INTERVAL: 'soon' is not a time; allowed: seconds, or "
                 "a time with its unit, 1ms to 24h");
    refused_with("METRIC_UPDATE_INTERVAL=0", ERANGE, "1ms to 24h");
    refused_with("METRIC_UPDATE_INTERVAL=-9223372036854775808", ERANGE, "1ms to 24h");
    refused_with("METRIC_UPDATE_INTERVAL=86401", ERANGE, "1ms to 24h");
    refused_with("METRIC_UPDATE_INTERVAL=25h", ERANGE, "1ms to 24h");
    refused_with("METRIC_UPDATE_INTERVAL=10W", EINVAL, "is not a time");
}

/* --- printing -------------------------------------------------------------------------------- */

static bool same_gpu(const struct gpu_entry *a, const struct gpu_entry *b)
{
    return !strcmp(a->uuid, b->uuid) && !strcmp(a->serial, b->serial) && a->domain == b->domain &&
           a->bus == b->bus && a->device == b->device && a->function == b->function &&
           a->minor == b->minor && a->numa_node == b->numa_node && a->module_id == b->module_id &&
           a->memory_bytes == b->memory_bytes && a->power_limit_mw == b->power_limit_mw &&
           a->profile == b->profile && !strcmp(a->model->name, b->model->name);
}

/* What is printed reads to the same GPUs, and prints to the same bytes. */
static void survives(const struct node *n, const char *name)
{
    struct text first = TEXT_INIT, second = TEXT_INIT;
    struct node again;
    bool same;

    config_print(&first, &n->cfg);
    read_node(&again, text_str(&first), NULL);
    is_int(again.r, 0, "%s: what is printed is read %s", name, why_text(&again.why));
    if (again.r == 0)
        config_print(&second, &again.cfg);
    is_str(text_str(&second), text_str(&first), "%s: … and printed the same", name);
    same = again.r == 0 && again.count == n->count;
    for (int i = 0; same && i < n->count; i++)
        same = same_gpu(&n->gpus[i], &again.gpus[i]);
    ok(same, "%s: … and describes the same GPUs", name);
    text_release(&first);
    text_release(&second);
    release(&again);
}

static void text_survives(const char *text, char **environment)
{
    struct node n;

    with_environment(&n, text, environment);
    ok(n.r == 0, "%s is read %s", text, why_text(&n.why));
    if (n.r == 0)
        survives(&n, text);
    release(&n);
}

/* What is hard to write so that it reads back. */
static void test_printing(void)
{
    char *environment[] = { (char *)"NUM_FAKE_GPUS=3", (char *)"GPU_PROFILES=1:wave,2:chaos",
                            NULL };

    text_survives("", NULL);
    text_survives("gpus: []", NULL);
    text_survives("gpus: {count: 2, memory: 12345678901B, power_limit: 123.456W}", NULL);
    text_survives("gpus: [{cooling: 0.12345678901234567}]\nspeed: 0.1\nseed: 9007199254740991",
                  NULL);
    text_survives("physics: {power_noise: 1e-7, memory_heat_load_c: 33.333333333333336}", NULL);
    text_survives("gpus: [{metrics: {}}, {workload: {}}, {}]", NULL);
    text_survives(
        "access: {dev: null, dev_mode: 000, control_mode: 07777}\nnuma: {cpus: [\"0\", \"1,3-5\"]}",
        NULL);
    text_survives("workloads: [{name: 'no', pod: 'a: b', namespace: \"- x\", container: '\"#'},"
                  " {name: '1', devices: [0], pod: 'back\\slash', namespace: ' blank '}]",
                  NULL);
    text_survives(
        "faults: [{gpu: 0, fault: thermal 1.1 for 1500ms}, {gpu: all, fault: nvlink down, "
        "at: 1h, for: 1m, every: 2m}]",
        NULL);
    text_survives("overrides: {0: {profile: wave}, 1: {}}", environment);
    text_survives("gpus: {count: 5, profile: [wave, idle]}\nprofile: cycle", environment);
    text_survives("gpus: [{uuid: GPU-8fc73fbd-91f0-697e-57ef-fc978bd54af1}]", environment);
    text_survives("gpus: []", environment);
    text_survives(issue_text, NULL);
}

static void test_examples(void)
{
    glob_t files;

    if (glob("schemas/examples/*.yaml", 0, NULL, &files))
        bail("there is no schemas/examples/*.yaml: tests run from the top of the tree");
    ok(files.gl_pathc >= 8, "there are %zu examples", files.gl_pathc);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *path = files.gl_pathv[i];
        struct config_options options = { .node = strstr(path, "topology") ? "node-a" : NULL };
        struct node n = { 0 };

        n.r = config_load(&n.cfg, path, &options, &n.why);
        if (n.r == 0)
            n.r = config_resolve(&n.cfg, &n.gpus, &n.count, &n.why);
        ok(n.r == 0 && n.count > 0, "%s is read %s", path, why_text(&n.why));
        if (n.r == 0)
            survives(&n, path);
        release(&n);
    }
    globfree(&files);
}

/* --- files ----------------------------------------------------------------------------------- */

static void put_file(const char *directory, const char *name, const char *text)
{
    char *path;
    FILE *f;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        bail("out of memory");
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        bail("%s cannot be written", path);
    free(path);
}

static void make_folder(const char *directory, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        bail("out of memory");
    if (mkdir(path, 0700) < 0)
        bail("%s cannot be made", path);
    free(path);
}

static void remove_tree(const char *directory)
{
    static const char *const parts[] = { "models/own.yaml", "models/t4.yaml",     "models/.x.yaml",
                                         "models/note.txt", "profiles/mine.yaml", "config.yaml",
                                         "models",          "profiles",           "." };
    char path[4096];

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, parts[i]);
        remove(path);
    }
    rmdir(directory);
}

/* A model with what a model must have. The caller frees it. */
static char *model_text(const char *name, const char *power)
{
    char *text;

    if (asprintf(
            &text,
            "name: %s\n"
            "product: Own Board\n"
            "architecture: Ampere\n"
            "compute_capability: 8.0\n"
            "cuda_cores: 1024\n"
            "multiprocessors: 8\n"
            "pci: {device_id: 0x20b0, subsystem_id: 0, generation: 4, width: 16}\n"
            "memory: {total: 8GiB, reserved: 256MiB, bar1: 256MiB, bus_width: 256}\n"
            "power: {%s}\n"
            "clocks:\n"
            "  sm: {min: 210MHz, idle: 210MHz, max: 1500MHz, step: 15MHz}\n"
            "  memory: [5001MHz, 405MHz]\n"
            "  video: {idle: 500MHz, max: 1200MHz}\n"
            "thermal: {max_operating: 85C, slowdown: 90C, shutdown: 95C, time_constant: 20s}\n",
            name, power) < 0)
        bail("out of memory");
    return text;
}

static void with_schemas(struct node *n, const char *directory, const char *text)
{
    struct config_options options = { .schemas = directory };

    read_node(n, text, &options);
}

static void test_schemas(const char *directory)
{
    char *own = model_text("Own-1", "idle: 5W, min: 10W, default: 30W, max: 40W");
    char *t4 = model_text("T4", "idle: 5W, min: 10W, default: 66W, max: 67W");
    struct node n;

    with_schemas(&n, directory, "gpus: {model: T4}");
    is_int(n.r, 0, "an empty directory changes nothing");
    is_int(gpu(&n, 0)->power_limit_mw, 70000, "… not the T4");
    release(&n);

    make_folder(directory, "models");
    put_file(directory, "models/own.yaml", own);
    put_file(directory, "models/t4.yaml", t4);
    put_file(directory, "models/.x.yaml", "broken: [");
    put_file(directory, "models/note.txt", "broken: [");
    with_schemas(&n, directory, "gpus: [{model: T4}, {model: own_1}, {model: L4}]\nprofile: wave");
    is_int(n.r, 0, "a directory with models is read %s", why_text(&n.why));
    if (n.r == 0) {
        is_int(gpu(&n, 0)->power_limit_mw, 66000, "a file stands over a built-in model");
        is_str(gpu(&n, 1)->model->name, "Own-1", "another one is added");
        is_int(gpu(&n, 1)->power_limit_mw, 30000, "… as it is written");
        is_str(gpu(&n, 2)->model->name, "L4", "the others are still there");
    }
    release(&n);

    make_folder(directory, "profiles");
    put_file(directory, "profiles/mine.yaml",
             "name: mine\nmetrics: {temperature_gpu_c: {random: {min: 1, max: 2}}}\n");
    with_schemas(&n, directory, "gpus: {count: 2}\nprofile: [mine, static]");
    is_int(n.r, 0, "a profile is added %s", why_text(&n.why));
    if (n.r == 0)
        is_str(profile_of(&n, 0), "mine", "… and used");
    release(&n);
    free(own);
    free(t4);
}

static void broken_schema(const char *directory, const char *file, const char *text, int error,
                          const char *words)
{
    struct node n;

    put_file(directory, file, text);
    with_schemas(&n, directory, "");
    is_int(n.r, -error, "%s: %s is refused", file, words);
    contains(why_text(&n.why), words, "… in a sentence");
    contains(why_text(&n.why), file, "… that names the file");
    release(&n);
}

static void test_broken_schemas(const char *directory)
{
    char *bad_power = model_text("Own-1", "idle: 5W, min: 50W, default: 30W, max: 40W");
    struct node n;

    broken_schema(directory, "models/own.yaml", "name: [\n", EINVAL,
                  "own.yaml:2:1: not valid YAML");
    broken_schema(directory, "models/own.yaml", "nmae: x\n", EINVAL,
                  "own.yaml:1:1: unknown key 'nmae' in a model; did you mean 'name'?");
    broken_schema(directory, "models/own.yaml", "", EINVAL,
                  "own.yaml:1:1: a model needs the key 'name'");
    broken_schema(directory, "models/own.yaml", bad_power, ERANGE,
                  "power: must have idle < default and min <= default <= max");
    put_file(directory, "models/own.yaml", "");
    remove_tree(directory);
    if (mkdir(directory, 0700) < 0)
        bail("%s cannot be made", directory);
    make_folder(directory, "profiles");
    broken_schema(directory, "profiles/mine.yaml", "name: cycle\n", EINVAL,
                  "mine.yaml:1:7: name: found 'cycle'; allowed:");
    broken_schema(directory, "profiles/mine.yaml", "name: a,b\n", EINVAL,
                  "mine.yaml:1:7: name: found 'a,b'; allowed:");
    broken_schema(directory, "profiles/mine.yaml", "name: x\nmetrics: {temperature_gpu: 5}\n",
                  EINVAL,
                  "mine.yaml:2:11: metrics: 'temperature_gpu' is not a metric; did you mean "
                  "'temperature_gpu_c'?");
    broken_schema(directory, "profiles/mine.yaml", "metrics: {temperature_gpu_c: 5}\n", EINVAL,
                  "mine.yaml:1:1: a profile needs the key 'name'");
    free(bad_power);

    with_schemas(&n, "/nowhere/at/all", "");
    is_int(n.r, -ENOENT, "a directory that is not there is refused");
    is_str(why_text(&n.why), "/nowhere/at/all/models: No such file or directory", "… by its name");
    release(&n);
}

static void test_files(const char *directory)
{
    struct config cfg;
    struct why why = { 0 };
    char path[4096];

    snprintf(path, sizeof(path), "%s/config.yaml", directory);
    is_int(config_load(&cfg, path, NULL, &why), -ENOENT, "a file that is not there");
    contains(why_text(&why), "config.yaml: No such file or directory", "… is named");
    config_release(&cfg); /* a failure leaves nothing, and may be released all the same */
    is_int(config_load(&cfg, directory, NULL, &why), -EISDIR, "a directory");
    contains(why_text(&why), ": Is a directory", "… is named");
    config_release(&cfg);
    put_file(directory, "config.yaml", "seed: 5\nspeed: fast\n");
    is_int(config_load(&cfg, path, NULL, &why), -EINVAL, "a file with a mistake");
    like(why_text(&why), "^/.*/config.yaml:2:8: speed: found 'fast'; allowed: a number$",
         "… is named with line and column");
    config_release(&cfg);
    put_file(directory, "config.yaml", "seed: 5\n");
    is_int(config_load(&cfg, path, NULL, &why), 0, "a file without");
    is_int(cfg.seed, 5, "… is read");
    config_release(&cfg);
    why_release(&why);
}

int main(void)
{
    char directory[] = "/tmp/test_config.XXXXXX";

    test_defaults();
    test_lists();
    test_gpu_keys();
    test_overrides();
    test_profiles();
    test_stable_identity();
    test_driver();
    test_pci();
    test_numa();
    test_links_and_access();
    test_workloads_and_faults();
    test_physics();
    test_nodes();
    test_node_names();
    test_environment();
    test_bad_environment();
    test_printing();
    test_examples();
    if (!mkdtemp(directory))
        bail("no directory can be made in /tmp");
    test_schemas(directory);
    test_broken_schemas(directory);
    test_files(directory);
    remove_tree(directory);
    return tap_done();
}
