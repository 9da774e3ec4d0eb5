/*
 * What variables of the environment change in a configuration, and which are refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/config.h"

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

int main(void)
{
    test_environment();
    test_bad_environment();
    return tap_done();
}
