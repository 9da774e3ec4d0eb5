/*
 * Tuning: fans, clock offsets, counters and draining do on a board what they say.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "tests/node.h"

static void test_fans(void)
{
    struct sim *sim = node_new("gpus: [{model: RTX-3090}, {model: A100-SXM4-40GB}]\n");

    is_int(sim_set_fan(sim, 0, 70000, NULL), 0, "a fan is set");
    sim_run(sim, 60 * SEC);
    is_int(node_parts(sim, 0, METRIC_FAN_SPEED), 70000, "and gets there");
    is_int(sim_set_fan(sim, 0, 10000, NULL), -ERANGE, "not below its lowest");
    is_int(sim_set_fan(sim, 0, 101000, NULL), -ERANGE, "nor above its highest");
    is_int(sim_set_fan(sim, 0, 0, NULL), 0, "it is given back");
    sim_run(sim, 120 * SEC);
    is_int(node_parts(sim, 0, METRIC_FAN_SPEED), 0, "and rests on a cool board");
    is_int(sim_set_fan(sim, 1, 50000, NULL), -EOPNOTSUPP, "a board without fans has none to set");
    sim_free(sim);
}

static void test_clock_offsets(void)
{
    struct sim *sim = node_new("gpus: [{model: RTX-3090}, {model: A100-SXM4-40GB}]\n");
    int64_t highest = node_parts(sim, 0, METRIC_CLOCK_SM_MAX);
    int64_t memory = node_parts(sim, 0, METRIC_CLOCK_MEMORY_MAX);

    sim_pin(sim, 0, METRIC_UTILIZATION_GPU, "10", NULL);
    sim_run(sim, 60 * SEC);
    is_int(node_parts(sim, 0, METRIC_CLOCK_SM), highest, "a light load runs at the highest clock");
    is_int(sim_set_clock_offsets(sim, 0, 100000, -500000, NULL), 0, "offsets are set");
    sim_run(sim, 60 * SEC);
    is_int(node_parts(sim, 0, METRIC_CLOCK_SM), highest + 100000, "the SM clock is higher");
    is_int(node_parts(sim, 0, METRIC_CLOCK_MEMORY), memory - 500000, "the memory clock lower");
    is_int(sim_lock_sm_clock(sim, 0, 900000, 900000, NULL), 0, "a lock");
    is_int(node_parts(sim, 0, METRIC_CLOCK_SM), 900000, "is stronger");
    is_int(sim_set_clock_offsets(sim, 0, 1000001, 0, NULL), -ERANGE, "too much is refused");
    is_int(sim_set_clock_offsets(sim, 0, 0, -2000001, NULL), -ERANGE, "too little, too");
    is_int(sim_set_clock_offsets(sim, 1, 0, 0, NULL), -EOPNOTSUPP, "data-centre boards have none");
    sim_free(sim);
}

static void test_ecc(void)
{
    struct sim *sim = node_new("gpus: [{model: A100-SXM4-40GB}, {model: RTX-3090}]\n");

    sim_fault(sim, 0, "ecc sbe 5", NULL);
    is_int(sim_clear_ecc(sim, 0, false, NULL), 0, "volatile counts are cleared");
    is_int(node_parts(sim, 0, METRIC_ECC_SBE_VOLATILE_TOTAL), 0, "and gone");
    is_int(node_parts(sim, 0, METRIC_ECC_SBE_AGGREGATE_TOTAL), 5, "the aggregate stays");
    sim_fault(sim, 0, "ecc sbe 2", NULL);
    is_int(sim_clear_ecc(sim, 0, true, NULL), 0, "the aggregate is cleared");
    is_int(node_parts(sim, 0, METRIC_ECC_SBE_AGGREGATE_TOTAL), 0, "and gone");
    is_int(node_parts(sim, 0, METRIC_ECC_SBE_VOLATILE_TOTAL), 2, "the volatile count stays");
    is_int(sim_clear_ecc(sim, 1, false, NULL), -EOPNOTSUPP, "without ECC there is none");
    sim_free(sim);
}

static uint64_t counted(const struct sim *sim, int link, int set)
{
    uint64_t tx, rx;

    link_counter_read(&world_gpus(sim_world(sim))[0].links[link], set, &tx, &rx);
    return tx;
}

static void test_link_counters(void)
{
    struct sim *sim = node_new("gpus: {count: 2, model: A100-SXM4-40GB}\n");
    uint64_t stood;

    sim_pin(sim, 0, METRIC_NVLINK_TX, "12000000000", NULL);
    sim_run(sim, SEC);
    stood = counted(sim, 3, 0);
    is_int((int64_t)stood, 1000000000, "a counter counts its link's part");
    is_int(sim_link_counters(sim, 0, "freeze 3 0", NULL), 0, "it is frozen");
    sim_run(sim, SEC);
    is_int((int64_t)counted(sim, 3, 0), (int64_t)stood, "and stands still");
    is_int((int64_t)counted(sim, 3, 1), 2 * (int64_t)stood, "the other one does not");
    sim_link_counters(sim, 0, "unfreeze 3 0", NULL);
    is_int((int64_t)counted(sim, 3, 0), (int64_t)stood, "it goes on from there");
    sim_run(sim, SEC);
    is_int((int64_t)counted(sim, 3, 0), 2 * (int64_t)stood, "and on");
    sim_link_counters(sim, 0, "clear traffic 3 0", NULL);
    is_int((int64_t)counted(sim, 3, 0), 0, "until it is cleared");
    sim_fault(sim, 0, "nvlink 3 down", NULL);
    is_int(node_parts(sim, 0, METRIC_NVLINK_REPLAY_ERROR_TOTAL), 1, "an error");
    is_int(sim_link_counters(sim, 0, "clear errors 2", NULL), 0, "of another link");
    is_int(node_parts(sim, 0, METRIC_NVLINK_REPLAY_ERROR_TOTAL), 1, "is not touched");
    is_int(sim_link_counters(sim, 0, "clear errors", NULL), 0, "all errors");
    is_int(node_parts(sim, 0, METRIC_NVLINK_REPLAY_ERROR_TOTAL), 0, "are");
    is_int(sim_link_counters(sim, 0, "control 1 1 2 255", NULL), 0, "what to count is kept");
    is_int(world_gpus(sim_world(sim))[0].links[1].counters[1].filter, 255, "as it was said");
    is_int(sim_link_counters(sim, 0, "freeze 12 0", NULL), -ERANGE, "there is no link 12");
    is_int(sim_link_counters(sim, 0, "freeze 0 2", NULL), -ERANGE, "nor a third counter");
    is_int(sim_link_counters(sim, 0, "freeze 0", NULL), -EINVAL, "a counter must be said");
    is_int(sim_link_counters(sim, 0, "freezing 0 0", NULL), -EINVAL, "words are whole");
    sim_free(sim);
}

static void test_draining(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");

    is_int(sim_set_draining(sim, 0, true, NULL), 0, "a GPU drains");
    is_int(node_apply(
               sim,
               "gpus: {count: 2}\nworkloads: [{name: a, gpus: 1, activity: [{utilization: 10}]}]\n",
               NULL),
           0, "a workload that takes any GPU");
    sim_run(sim, SEC);
    is_int(world_shares(sim_world(sim))[0].gpu, 1, "is given the other");
    sim_free(sim);
}

int main(void)
{
    test_fans();
    test_clock_offsets();
    test_ecc();
    test_link_counters();
    test_draining();
    return tap_done();
}
