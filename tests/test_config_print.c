/*
 * Configurations printed: what is printed reads back as the same, the examples as well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <glob.h>

#include "tests/config.h"

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
    text_survives(node_a_text, NULL);
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

int main(void)
{
    test_printing();
    test_examples();
    return tap_done();
}
