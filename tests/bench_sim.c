/*
 * How fast the simulator is: the cost of a step, how it grows with GPUs, and the size of a world.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"
#include "tests/bench.h"

static void die(const struct why *why)
{
    fprintf(stderr, "bench_sim: %s\n", why_text(why));
    exit(1);
}

/* A node of busy GPUs: each has a workload with random values, none idles. */
static struct sim *busy_node(int gpus)
{
    struct why why = { 0 };
    struct config cfg;
    struct sim *sim;
    char yaml[256];

    snprintf(
        yaml, sizeof(yaml),
        "gpus: {count: %d, model: A100-SXM4-40GB, workload: {activity: {utilization: {jitter: {value: 80, "
        "spread: 10}}, tensor: 60}, memory: 20GiB}}\n",
        gpus);
    if (config_parse(&cfg, yaml, strlen(yaml), NULL, &why) < 0)
        die(&why);
    sim = sim_new(&cfg, &why);
    if (!sim)
        die(&why);
    config_release(&cfg);
    return sim;
}

enum { ROUNDS = 7 };

static double step_ns(struct sim *sim, int steps)
{
    double rounds[ROUNDS];

    for (int r = 0; r < ROUNDS; r++) {
        int64_t start = bench_now_ns();

        for (int i = 0; i < steps; i++)
            sim_step(sim);
        rounds[r] = (double)(bench_now_ns() - start) / steps;
    }
    return bench_median(rounds, ROUNDS);
}

/* What any simulator of two copies pays at least: copying the GPUs. */
static double copy_ns(const struct sim *sim, int times)
{
    const struct world *w = sim_world(sim);
    size_t bytes = w->used[SECTION_GPUS] * sizeof(struct gpu);
    char *to = malloc(bytes);
    int64_t start;
    double ns;

    if (!to)
        exit(1);
    memcpy(to, world_gpus(w), bytes);
    start = bench_now_ns();
    for (int i = 0; i < times; i++) {
        memcpy(to, world_gpus(w), bytes);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    ns = (double)(bench_now_ns() - start) / times;
    free(to);
    return ns;
}

static void bench_steps(void)
{
    static const int counts[] = { 1, 8, 64, 512, 1024, 4096 };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct sim *sim = busy_node(counts[i]);
        int steps = 200000 / (counts[i] + 10) + 20;
        double ns = step_ns(sim, steps), copy = copy_ns(sim, steps);
        char what[64];

        snprintf(what, sizeof(what), "step per busy GPU, %d GPU%s", counts[i],
                 counts[i] == 1 ? "" : "s");
        bench_row(what, ns / counts[i] / 1000, "us", 5, copy / counts[i] / 1000,
                  "memcpy of its state");
        if (counts[i] == 1024)
            bench_row("one core, 1,024 GPUs at 10 steps a second", ns * 10 / 1e9 * 100, "%", 10, 0,
                      "");
        sim_free(sim);
    }
}

static void bench_hour(void)
{
    struct sim *sim = busy_node(8);
    int64_t start;

    bench_row("world of 8 GPUs", (double)world_store_bytes(sim_store(sim)) / 1024, "KiB", 1024, 0,
              "");
    start = bench_now_ns();
    sim_run(sim, 3600 * NS_PER_S);
    bench_row("one hour simulated, 8 busy GPUs", (double)(bench_now_ns() - start) / 1e9, "s", 2, 0,
              "");
    sim_free(sim);
}

/* Many workloads on few GPUs. */
static void bench_workloads(void)
{
    struct sim *sim = busy_node(8);
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    struct why why = { 0 };
    int64_t start = bench_now_ns();

    for (int i = 0; i < 1000; i++) {
        if (workload_parse(&spec, "bench", "{activity: '10:5:30s', repeat: 0, memory: 1MiB}",
                           &arena, &why) < 0)
            die(&why);
        snprintf(spec.name, sizeof(spec.name), "w%d", i);
        if (sim_add_workload(sim, &spec, NULL, &why) < 0)
            die(&why);
    }
    bench_row("adding a workload, mean of 1,000", (double)(bench_now_ns() - start) / 1e6 / 1000,
              "ms", 20, 0, "");
    bench_row("step with 1,000 workloads on 8 GPUs", step_ns(sim, 100) / 1e6, "ms", 2, 0, "");
    arena_release(&arena);
    sim_free(sim);
}

static void bench_start(void)
{
    int64_t start = bench_now_ns();
    struct sim *sim = busy_node(8);

    bench_row("reading a configuration, making 8 GPUs", (double)(bench_now_ns() - start) / 1e6,
              "ms", 0, 0, "");
    sim_free(sim);
    start = bench_now_ns();
    sim = busy_node(1024);
    bench_row("the same, 1,024 GPUs", (double)(bench_now_ns() - start) / 1e6, "ms", 0, 0, "");
    sim_free(sim);
}

int main(void)
{
    bench_heading("simulator");
    bench_steps();
    bench_hour();
    bench_workloads();
    bench_start();
    return 0;
}
