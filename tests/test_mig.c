/*
 * MIG: instances are created, placed, refused and destroyed as the board's table says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>

#include "tests/node.h"

static int mig(struct sim *sim, const char *text)
{
    return sim_mig(sim, 0, text, NULL);
}

static const struct mig_gi *gi(const struct sim *sim, int number)
{
    return &world_gpus(sim_world(sim))[0].gis[number];
}

static struct sim *mig_node(const char *model)
{
    char yaml[64];

    snprintf(yaml, sizeof(yaml), "gpus: {model: %s, mig_mode: true}\n", model);
    return node_new(yaml);
}

static void test_seven_small_ones(void)
{
    struct sim *sim = mig_node("A100-SXM4-40GB");
    int refused = 0, wrong = 0;

    for (int i = 0; i < 7; i++)
        refused += mig(sim, "create 1g.5gb") != 0;
    is_int(refused, 0, "an A100 has room for seven 1g.5gb");
    for (int i = 0; i < 7; i++)
        wrong += !gi(sim, 7 + i)->used || gi(sim, 7 + i)->start != i ||
                 gi(sim, 7 + i)->cis[0].slices != 1;
    is_int(wrong, 0, "numbered from 7, one memory slice each, one compute instance in each");
    is_int(mig(sim, "create 1g.5gb"), -ENOSPC, "an eighth is refused");
    is_int(mig(sim, "destroy 9"), 0, "one is destroyed");
    is_int(mig(sim, "create 2g.10gb"), -ENOSPC, "its place is too small for a larger one");
    is_int(mig(sim, "create 19"), 0, "but right for its like, asked for by number");
    is_int(gi(sim, 9)->start, 2, "in the same place");
    sim_free(sim);
}

static void test_mixture(void)
{
    struct sim *sim = mig_node("A100-SXM4-40GB");

    is_int(mig(sim, "create 3g.20gb at 4"), 0, "a place can be asked for");
    is_int(gi(sim, 1)->start, 4, "and is given");
    is_int(mig(sim, "create 3g.20gb at 2"), -ENOSPC, "if the board can begin there");
    is_int(mig(sim, "create 4g.20gb"), 0, "3 + 4 compute slices fill the GPU");
    is_int(mig(sim, "create 1g.5gb"), -ENOSPC, "so that nothing more fits");
    is_int(mig(sim, "destroy 1"), 0, "until one goes");
    is_int(mig(sim, "create-gi 2g.10gb"), 0, "a GPU instance without compute instance");
    is_int(gi(sim, 3)->cis[0].slices, 0, "has none");
    is_int(mig(sim, "create-ci 3 1"), 0, "one of one slice");
    is_int(mig(sim, "create-ci 3"), 0, "and one of what is left");
    is_int(mig(sim, "create-ci 3"), -ENOSPC, "which is nothing then");
    is_int(mig(sim, "destroy 3 0"), 0, "a compute instance can go alone");
    is_int(gi(sim, 3)->used && gi(sim, 3)->cis[1].slices == 1, 1, "the rest stays");
    is_int(gi(sim, 3)->cis[1].start, 1, "where it was");
    sim_free(sim);
}

static void test_compute_places(void)
{
    struct sim *sim = mig_node("A100-SXM4-40GB");

    is_int(mig(sim, "create-gi 4g.20gb"), 0, "a GPU instance of four slices");
    is_int(mig(sim, "create-ci 1 1 at 1"), 0, "a place for a compute instance can be asked for");
    is_int(gi(sim, 1)->cis[0].start, 1, "and is given");
    is_int(mig(sim, "create-ci 1 1 at 1"), -ENOSPC, "once");
    is_int(mig(sim, "create-ci 1 2 at 0"), -ENOSPC, "not where another is in the way");
    is_int(mig(sim, "create-ci 1 1 at 4"), -ENOSPC, "nor behind the end");
    is_int(mig(sim, "create-ci 1 3"), -ENOSPC, "three are left, but not in one piece");
    is_int(mig(sim, "create-ci 1"), 0, "what is left in one piece");
    is_int(gi(sim, 1)->cis[1].start * 10 + gi(sim, 1)->cis[1].slices, 22, "are the last two");
    is_int(mig(sim, "create-ci 1"), 0, "and the first");
    is_int(gi(sim, 1)->cis[2].start, 0, "which is at the beginning");
    is_int(mig(sim, "create-ci 1 1 at"), -EINVAL, "half a place is refused");
    is_int(mig(sim, "destroy 1 0 at 1"), -EINVAL, "and a place of what goes");
    sim_free(sim);
}

static void test_refusals(void)
{
    struct sim *sim = node_new("gpus: [{model: A100-SXM4-40GB}, {model: T4}]\n");
    struct why why = { 0 };

    is_int(mig(sim, "create 1g.5gb"), -EOPNOTSUPP, "without MIG mode there are no instances");
    is_int(sim_set_mig_mode(sim, 0, true, NULL), 0, "with it");
    is_int(sim_mig(sim, 0, "create 1g.5g", &why), -EINVAL, "an unknown profile is refused");
    contains(why_text(&why), "did you mean '1g.5gb'", "with a hint");
    is_int(mig(sim, "make 1g.5gb"), -EINVAL, "so is another verb");
    is_int(mig(sim, "create 1g.5gb at"), -EINVAL, "half a place");
    is_int(mig(sim, "destroy 15"), -ERANGE, "a number beyond the last");
    is_int(mig(sim, "destroy 7"), -ENOENT, "an instance that is not there");
    is_int(mig(sim, "create-ci 7"), -ENOENT, "or a part of it");
    mig(sim, "create 7g.40gb");
    is_int(sim_set_mig_mode(sim, 0, false, NULL), -EBUSY, "MIG stays on while there are instances");
    mig(sim, "destroy 0");
    is_int(sim_set_mig_mode(sim, 0, false, NULL), 0, "and goes off when there are none");
    why_release(&why);
    sim_free(sim);
}

static void test_identity(void)
{
    char a[48], b[48], again[48];

    mig_uuid("GPU-1", 7, 0, a, sizeof(a));
    mig_uuid("GPU-1", 8, 0, b, sizeof(b));
    mig_uuid("GPU-1", 7, 0, again, sizeof(again));
    like(a, "^MIG-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$",
         "a UUID of its own kind");
    ok(strcmp(a, b) != 0, "another for another instance");
    is_str(again, a, "the same for the same");
}

/* Every profile of every model can be had as often as its table says. */
static void test_tables(void)
{
    struct model_set set;
    int wrong = 0, profiles = 0;

    model_set_load(&set, NULL, NULL);
    for (int m = 0; m < set.count; m++)
        for (int p = 0; p < set.models[m].mig.count; p++) {
            struct sim *sim = mig_node(set.models[m].name);
            char text[64];
            int made = 0;

            snprintf(text, sizeof(text), "create %s", set.models[m].mig.items[p].name);
            while (mig(sim, text) == 0)
                made++;
            profiles++;
            if (made != set.models[m].mig.items[p].count) {
                diag("%s: %d of %s, not %d", set.models[m].name, made,
                     set.models[m].mig.items[p].name, (int)set.models[m].mig.items[p].count);
                wrong++;
            }
            sim_free(sim);
        }
    ok(profiles > 30, "models have MIG profiles (%d)", profiles);
    is_int(wrong, 0, "each fits as often as it says");
    model_set_release(&set);
}

int main(void)
{
    test_seven_small_ones();
    test_mixture();
    test_compute_places();
    test_refusals();
    test_identity();
    test_tables();
    return tap_done();
}
