/*
 * Configurations: what every key means, and where GPUs come from. What is refused stands in tests/bad.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/config.h"

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

int main(void)
{
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
    return tap_done();
}
