/*
 * Faults: each does to the GPU, the events and the metrics what it does on a real board.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "tests/node.h"

/* The newest event of that kind, or NULL. */
static const struct event *last_event(const struct sim *sim, enum event_kind kind)
{
    for (uint64_t n = sim_world(sim)->node.events; n > 0; n--) {
        const struct event *e = world_event_get(sim_store(sim), n);

        if (!e || e->kind == kind)
            return e;
    }
    return NULL;
}

static int64_t metric(const struct sim *sim, enum metric id)
{
    return node_parts(sim, 0, id);
}

static void test_xid(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");
    const struct event *e;

    is_int(metric(sim, METRIC_XID_LAST), 0, "no Xid at first");
    is_int(sim_fault(sim, 0, "xid 31", NULL), 0, "an Xid");
    is_int(metric(sim, METRIC_XID_LAST), 31, "is the last one");
    is_int(node_parts(sim, 1, METRIC_XID_LAST), 0, "of that GPU only");
    e = last_event(sim, EVENT_XID);
    is_int(e->code, 31, "it is an event");
    is_str(e->text, "MMU Fault", "with the driver's words");
    is_int(e->bus, 0x06, "and the address");
    sim_fault(sim, 0, "xid 13 for 10s", NULL);
    is_int(metric(sim, METRIC_XID_LAST), 13, "another one");
    sim_run(sim, 11 * SEC);
    is_int(metric(sim, METRIC_XID_LAST), 0, "is over after its time");
    sim_free(sim);
}

static void test_ecc_on_row_remapping_boards(void)
{
    struct sim *sim = node_new("gpus: {count: 1, model: A100-SXM4-40GB}\n");

    sim_fault(sim, 0, "ecc sbe 5", NULL);
    is_int(metric(sim, METRIC_ECC_SBE_VOLATILE_TOTAL), 5, "corrected errors count");
    is_int(metric(sim, METRIC_XID_LAST), 0, "without an Xid");
    sim_fault(sim, 0, "ecc dbe 1", NULL);
    is_int(metric(sim, METRIC_ECC_DBE_VOLATILE_TOTAL), 1, "uncorrected errors count");
    is_int(metric(sim, METRIC_XID_LAST), 94, "with an Xid");
    is_int(metric(sim, METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL), 1, "a row is remapped");
    is_int(metric(sim, METRIC_REMAPPED_ROWS_PENDING), 1, "at the next reset");
    is_int(metric(sim, METRIC_RECOVERY_ACTION), 1, "which is asked for");
    is_int(metric(sim, METRIC_REMAP_BANKS_MAX_COUNT), 639, "a bank has spent a spare row");
    sim_fault(sim, 0, "rows correctable 2", NULL);
    is_int(metric(sim, METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL), 2, "rows can be remapped directly");
    sim_fault(sim, 0, "rows failure", NULL);
    is_int(metric(sim, METRIC_REMAPPED_ROWS_FAILURE), 1, "remapping can fail");
    is_int(metric(sim, METRIC_XID_LAST), 64, "with its Xid");
    sim_fault(sim, 0, "recover", NULL);
    is_int(metric(sim, METRIC_ECC_DBE_VOLATILE_TOTAL), 0, "a reset clears volatile counts");
    is_int(metric(sim, METRIC_ECC_DBE_AGGREGATE_TOTAL), 1, "but not aggregate ones");
    is_int(metric(sim, METRIC_ECC_SBE_AGGREGATE_TOTAL), 5, "of either kind");
    is_int(metric(sim, METRIC_REMAPPED_ROWS_PENDING), 0, "nothing is pending");
    is_int(metric(sim, METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL), 1, "remapped rows stay remapped");
    is_int(metric(sim, METRIC_XID_LAST), 0, "no Xid any more");
    is_int(sim_fault(sim, 0, "pages dbe", NULL), -EOPNOTSUPP, "this board retires no pages");
    sim_free(sim);
}

static void test_ecc_on_page_retiring_boards(void)
{
    struct sim *sim = node_new("gpus: {count: 1, model: T4}\n");

    sim_fault(sim, 0, "ecc dbe 2", NULL);
    is_int(metric(sim, METRIC_RETIRED_PAGES_DBE_TOTAL), 2, "pages are retired");
    is_int(metric(sim, METRIC_RETIRED_PAGES_PENDING), 1, "at the next reset");
    is_int(metric(sim, METRIC_XID_LAST), 63, "with an Xid");
    sim_fault(sim, 0, "pages sbe 3", NULL);
    is_int(metric(sim, METRIC_RETIRED_PAGES_SBE_TOTAL), 3, "for either reason");
    is_int(sim_fault(sim, 0, "rows failure", NULL), -EOPNOTSUPP, "this board remaps no rows");
    sim_free(sim);
    sim = node_new("gpus: {count: 1, ecc_mode: false}\n");
    is_int(sim_fault(sim, 0, "ecc sbe", NULL), -EOPNOTSUPP, "without ECC nobody counts errors");
    sim_free(sim);
}

static void test_lasting_faults(void)
{
    struct sim *sim = node_new("gpus: {count: 1}\n");

    node_workload(sim, "w", "{activity: 100}", NULL);
    sim_run(sim, 3 * SEC);
    sim_fault(sim, 0, "power_brake for 10s", NULL);
    sim_run(sim, SEC);
    is_int(metric(sim, METRIC_THROTTLE_REASONS) & (THROTTLE_POWER_BRAKE | THROTTLE_HW_SLOWDOWN),
           THROTTLE_POWER_BRAKE | THROTTLE_HW_SLOWDOWN, "power brake");
    ok(node_value(sim, 0, METRIC_CLOCK_SM) <= 705, "halves the clock");
    sim_run(sim, 12 * SEC);
    is_int(metric(sim, METRIC_THROTTLE_REASONS), 0, "and is over after its time");
    sim_fault(sim, 0, "sensor temperature_gpu_c for 5s", NULL);
    is_int(sim_read(sim, 0, METRIC_TEMPERATURE_GPU, &(int64_t){ 0 }), -EIO, "a sensor fails");
    is_int(sim_read(sim, 0, METRIC_POWER_USAGE, &(int64_t){ 0 }), 0, "the others do not");
    sim_run(sim, 6 * SEC);
    is_int(sim_read(sim, 0, METRIC_TEMPERATURE_GPU, &(int64_t){ 0 }), 0, "and comes back");
    sim_free(sim);
}

static void test_fallen_off_the_bus(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n");
    struct why why = { 0 };
    int64_t energy;

    sim_run(sim, 10 * SEC);
    energy = metric(sim, METRIC_ENERGY_TOTAL);
    is_int(sim_fault(sim, 0, "fallen_off_bus", NULL), 0, "a GPU falls off the bus");
    is_int(sim_read(sim, 0, METRIC_POWER_USAGE, &(int64_t){ 0 }), -ENODEV,
           "nothing of it can be read");
    is_int(sim_read(sim, 1, METRIC_POWER_USAGE, &(int64_t){ 0 }), 0, "the other is still there");
    is_int(last_event(sim, EVENT_XID)->code, 79, "Xid 79 says so");
    is_int(sim_fault(sim, 0, "xid 31", &why), -ENODEV, "nothing more can happen to it");
    is_int(sim_set_power_limit(sim, 0, 300000, &why), -ENODEV, "nor be set");
    sim_run(sim, 10 * SEC);
    is_int(sim_fault(sim, 0, "recover", NULL), 0, "until it is recovered");
    sim_step(sim);
    ok(metric(sim, METRIC_ENERGY_TOTAL) - energy < 50000, "it used nothing meanwhile");
    ok(last_event(sim, EVENT_RECOVERED) != NULL, "recovery is an event");
    sim_fault(sim, 1, "fallen_off_bus for 5s", NULL);
    sim_run(sim, 6 * SEC);
    is_int(sim_read(sim, 1, METRIC_POWER_USAGE, &(int64_t){ 0 }), 0, "or by itself after its time");
    why_release(&why);
    sim_free(sim);
}

static void test_timeline(void)
{
    struct sim *sim = node_new("gpus: {count: 2}\n"
                               "faults:\n"
                               "  - {at: 10s, gpu: 0, fault: xid 48}\n"
                               "  - {at: 20s, gpu: all, fault: ecc sbe 1, every: 10s}\n"
                               "  - {at: 30s, gpu: 1, fault: power_brake, for: 5s}\n");

    sim_run(sim, 9 * SEC);
    is_int(metric(sim, METRIC_XID_LAST), 0, "not before its time");
    sim_run(sim, SEC);
    is_int(metric(sim, METRIC_XID_LAST), 48, "at its time");
    sim_run(sim, 22 * SEC);
    is_int(metric(sim, METRIC_ECC_SBE_VOLATILE_TOTAL), 2, "again and again");
    is_int(node_parts(sim, 1, METRIC_ECC_SBE_VOLATILE_TOTAL), 2, "on all GPUs");
    ok(node_parts(sim, 1, METRIC_THROTTLE_REASONS) & THROTTLE_POWER_BRAKE, "for its duration");
    sim_run(sim, 5 * SEC);
    is_int(node_parts(sim, 1, METRIC_THROTTLE_REASONS) & THROTTLE_POWER_BRAKE, 0, "and no longer");
    sim_run(sim, 100 * SEC);
    is_int(metric(sim, METRIC_ECC_SBE_VOLATILE_TOTAL), 12, "as often as said");
    sim_free(sim);
}

/* A command's own time: the fault waits in the plan beside those of the configuration. */
static void test_after(void)
{
    struct sim *sim = node_new("gpus: {count: 2, model: A100-SXM4-40GB}\n"
                               "faults: [{at: 20s, gpu: 0, fault: xid 48}]\n");
    struct why why = { 0 };
    uint64_t events = sim_world(sim)->node.events;

    is_int(sim_fault(sim, 0, "xid 79 after 10s for 5s", NULL), 0, "a fault that waits");
    is_int(sim_fault(sim, 1, "thermal 3 after 10s", NULL), 0, "and another");
    is_int((int64_t)sim_world(sim)->node.events, (int64_t)events, "are no events yet");
    is_int(metric(sim, METRIC_XID_LAST), 0, "and change nothing");
    sim_run(sim, 9 * SEC);
    is_int(metric(sim, METRIC_XID_LAST), 0, "not before their time");
    sim_run(sim, 2 * SEC);
    is_int(metric(sim, METRIC_XID_LAST), 79, "then one happens");
    is_int(node_parts(sim, 1, METRIC_XID_LAST), 0, "to its own GPU");
    sim_run(sim, 5 * SEC);
    is_int(metric(sim, METRIC_XID_LAST), 0, "for its duration");
    sim_run(sim, 5 * SEC);
    is_int(metric(sim, METRIC_XID_LAST), 48, "those of the configuration happen, too");
    sim_fault(sim, 0, "recover", NULL);
    sim_run(sim, 60 * SEC);
    is_int(metric(sim, METRIC_XID_LAST), 0, "each once");
    for (int i = 0; i < 100; i++) {
        sim_fault(sim, 0, "ecc sbe 1 after 1s", NULL);
        sim_run(sim, 2 * SEC);
    }
    is_int(metric(sim, METRIC_ECC_SBE_VOLATILE_TOTAL), 100, "a hundred, one after the other");
    ok(sim_world(sim)->used[SECTION_FAULTS] <= 3, "take the room of those that are over");
    for (int i = 0; i < 100; i++)
        sim_fault(sim, 0, "ecc sbe 1 after 1s", NULL);
    sim_run(sim, 2 * SEC);
    is_int(metric(sim, METRIC_ECC_SBE_VOLATILE_TOTAL), 200, "and a hundred at once");
    sim_fault(sim, 0, "fallen_off_bus", NULL);
    is_int(sim_fault(sim, 0, "recover after 5s", NULL), 0, "a lost GPU may be recovered later");
    sim_run(sim, 6 * SEC);
    ok(!gpu_has(&world_gpus(sim_world(sim))[0], CONDITION_LOST), "and is");
    is_int(sim_fault(sim, 0, "pages dbe 1 after 1s", &why), -EOPNOTSUPP,
           "what the board cannot have is refused at once");
    why_release(&why);
    sim_free(sim);
}

static void test_modes_wait_for_a_reset(void)
{
    struct sim *sim = node_new("gpus: [{model: A100-SXM4-40GB}, {model: T4}]\n");
    struct why why = { 0 };

    is_int(sim_set_ecc_mode(sim, 0, false, NULL), 0, "ECC can be switched");
    is_int(metric(sim, METRIC_ECC_MODE), 1, "it is still on");
    is_int(metric(sim, METRIC_ECC_MODE_PENDING), 0, "off is pending");
    sim_fault(sim, 0, "recover", NULL);
    is_int(metric(sim, METRIC_ECC_MODE), 0, "a reset makes it so");
    is_int(sim_read(sim, 0, METRIC_ECC_SBE_VOLATILE_TOTAL, &(int64_t){ 0 }), -ENODATA,
           "counts are gone");
    is_int(sim_set_mig_mode(sim, 1, true, &why), -EOPNOTSUPP, "a T4 has no MIG");
    node_workload(sim, "w", "{activity: 5, devices: 0}", NULL);
    is_int(sim_set_mig_mode(sim, 0, true, &why), -EBUSY, "a GPU in use cannot change");
    sim_remove_workload(sim, "w", NULL);
    is_int(sim_set_mig_mode(sim, 0, true, &why), 0, "a free one can");
    is_int(sim_set_compute_mode(sim, 0, 3, &why), 0, "compute mode");
    is_int(metric(sim, METRIC_COMPUTE_MODE), 3, "is set at once");
    is_int(sim_set_compute_mode(sim, 0, 4, &why), -ERANGE, "if there is such a mode");
    is_int(sim_set_persistence_mode(sim, 0, false, &why), 0, "persistence mode");
    is_int(metric(sim, METRIC_PERSISTENCE_MODE), 0, "too");
    is_int(sim_fault(sim, 7, "xid 31", &why), -ENODEV, "a GPU that is not there");
    why_release(&why);
    sim_free(sim);
}

int main(void)
{
    test_xid();
    test_ecc_on_row_remapping_boards();
    test_ecc_on_page_retiring_boards();
    test_lasting_faults();
    test_fallen_off_the_bus();
    test_timeline();
    test_after();
    test_modes_wait_for_a_reset();
    return tap_done();
}
