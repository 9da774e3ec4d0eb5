/*
 * Configurations in the form with nodes: which node is picked, and what a node is called.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/config.h"

static void is_node_a(const struct node *n)
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
    struct node n = node_of(node_a_text);
    struct text several = TEXT_INIT;

    is_node_a(&n);
    release(&n);

    text_addf(&several, "%s  node-b: {gpu-product: T4, gpu-count: 3}\n", node_a_text);
    read_node(&n, text_str(&several), &named);
    is_node_a(&n);
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

int main(void)
{
    test_nodes();
    test_node_names();
    return tap_done();
}
