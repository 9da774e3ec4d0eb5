/*
 * Scenario run: what steps do, and how it is taken back. See scenario_run.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/cli/scenario_run.h"

/* --- GPUs ------------------------------------------------------------------------------------ */

static int act_on_gpu(struct scenario_run *run, const struct scenario_step *s, int gpu,
                      struct why *why)
{
    const struct scenario_setting *set = s->set.items;
    int r = 0;

    if (*s->profile)
        r = changes_put_gpu(&run->changes, gpu, "profile", s->profile, why);
    for (size_t i = 0; r == 0 && i < s->set.count; i++)
        r = changes_put_gpu(&run->changes, gpu, set[i].file, set[i].value, why);
    if (r == 0 && *s->fault)
        r = changes_put_gpu(&run->changes, gpu, "fault", s->fault, why);
    return r;
}

static int act_on_gpus(struct scenario_run *run, const struct scenario_step *s, struct why *why)
{
    int *gpus, r = 0, count = drive_find_gpus(&run->client, &s->gpu, &gpus, why);

    if (count < 0)
        return count;
    for (int i = 0; r == 0 && i < count; i++)
        r = act_on_gpu(run, s, gpus[i], why);
    free(gpus);
    return r;
}

int scenario_set_profile(struct scenario_run *run, const char *profile, struct why *why)
{
    int r = 0;

    for (int i = 0; r == 0 && i < run->gpu_count; i++)
        r = changes_put_gpu(&run->changes, i, "profile", profile, why);
    return r;
}

/* --- workloads ------------------------------------------------------------------------------- */

/* "[{…}], repeat: 5, memory: 20GiB": all in one, so that it begins as a whole. */
static void add_activity(struct text *out, const struct workload_spec *w)
{
    workload_activity_print(out, &w->activity);
    text_addf(out, ", repeat: %" PRId64, w->repeat);
    if (w->memory.count) {
        text_add(out, ", memory: ");
        signal_print(out, UNIT_BYTES, w->memory.items);
    }
}

static void add_devices(struct text *out, const struct workload_spec *w)
{
    const struct device_name *devices = w->devices.items;

    for (size_t i = 0; i < w->devices.count; i++)
        text_addf(out, "%s%s", i ? "," : "", devices[i].text);
}

int scenario_workload_files(const struct workload_spec *w, scenario_writer *write, void *whom)
{
    enum { PID, NAMESPACE, POD, CONTAINER, DEVICES, LIMITS, MEMORY, ACTIVITY, FILES };
    static const char *const names[] = { "pid",     "namespace", "pod",    "container",
                                         "devices", "limits",    "memory", "activity" };
    struct text texts[FILES] = { 0 }, path = TEXT_INIT;
    int r = 0;

    if (w->pid)
        text_addf(&texts[PID], "%" PRId64, w->pid);
    text_add(&texts[NAMESPACE], w->namespace);
    text_add(&texts[POD], w->pod);
    text_add(&texts[CONTAINER], w->container);
    add_devices(&texts[DEVICES], w);
    if (w->limits.count)
        workload_limits_print(&texts[LIMITS], &w->limits);
    if (w->activity.count)
        add_activity(&texts[ACTIVITY], w);
    else if (w->memory.count)
        signal_print(&texts[MEMORY], UNIT_BYTES, w->memory.items);
    for (int i = 0; i < FILES; i++) {
        text_cut(&path, 0);
        text_addf(&path, "workloads/%s/%s", w->name, names[i]);
        if (r == 0 && texts[i].length)
            r = write(whom, text_str(&path), text_str(&texts[i]));
        text_release(&texts[i]);
    }
    text_release(&path);
    return r;
}

struct starting {
    struct scenario_run *run;
    struct why *why;
};

static int write_part(void *whom, const char *path, const char *text)
{
    const struct starting *s = whom;

    return client_put(&s->run->client, path, text, s->why);
}

/* All of it or nothing: one whose part is refused is not left behind. */
static int start_workload(struct scenario_run *run, const struct workload_spec *w, struct why *why)
{
    struct starting s = { run, why };
    struct text dir = TEXT_INIT;
    int r;

    text_addf(&dir, "workloads/%s", w->name);
    r = client_make(&run->client, text_str(&dir), why);
    if (r == 0) {
        r = scenario_workload_files(w, write_part, &s);
        if (r < 0)
            client_remove(&run->client, text_str(&dir), NULL);
        else
            r = changes_made(&run->changes, text_str(&dir));
    }
    text_release(&dir);
    return r;
}

static int end_workload(struct scenario_run *run, const char *name, struct why *why)
{
    struct text dir = TEXT_INIT;
    int r;

    text_addf(&dir, "workloads/%s", name);
    r = client_remove(&run->client, text_str(&dir), why);
    if (r == 0 && !run->keep && !changes_has(&run->changes, text_str(&dir))) {
        text_add(&dir, " was there before and is not restored");
        run->remark(run->whom, text_str(&dir));
    }
    text_release(&dir);
    return r;
}

int scenario_act(struct scenario_run *run, const struct scenario_step *s, struct why *why)
{
    const struct scenario_write *writes = s->write.items;
    int r = 0;

    if (scenario_step_has(s, "speed")) {
        run->speed = s->speed;
        r = drive_speed(&run->drive, s->speed, why);
    }
    if (r == 0 && (*s->profile || *s->fault || s->set.count))
        r = act_on_gpus(run, s, why);
    if (r == 0 && *s->end)
        r = end_workload(run, s->end, why);
    if (r == 0 && *s->workload.name)
        r = start_workload(run, &s->workload, why);
    for (size_t i = 0; r == 0 && i < s->write.count; i++)
        r = changes_put(&run->changes, writes[i].file, writes[i].text, why);
    return r;
}

/* --- in words -------------------------------------------------------------------------------- */

static void print_gpus(struct text *out, const struct bind_list *gpus)
{
    const struct device_name *names = gpus->items;

    text_add(out, "GPU ");
    for (size_t i = 0; i < gpus->count; i++)
        text_addf(out, "%s%s", i ? ", " : "", names[i].text);
    text_add(out, ":");
}

void scenario_step_print(struct text *out, const struct scenario_step *s)
{
    const struct scenario_setting *set = s->set.items;
    const struct scenario_write *writes = s->write.items;
    const char *before = "";

    if (*s->note) {
        text_add(out, s->note);
        return;
    }
    if (*s->profile || *s->fault || s->set.count) {
        print_gpus(out, &s->gpu);
        if (*s->profile)
            text_addf(out, " profile %s", s->profile);
        for (size_t i = 0; i < s->set.count; i++)
            text_addf(out, " %s %s", set[i].file, set[i].value);
        if (*s->fault)
            text_addf(out, " fault %s", s->fault);
        before = "; ";
    }
    if (*s->end) {
        text_addf(out, "%sworkload %s ends", before, s->end);
        before = "; ";
    }
    if (*s->workload.name) {
        text_addf(out, "%sworkload %s begins", before, s->workload.name);
        before = "; ";
    }
    for (size_t i = 0; i < s->write.count; i++) {
        text_addf(out, "%swrite %s", before, writes[i].file);
        before = "; ";
    }
    if (scenario_step_has(s, "speed")) {
        text_addf(out, "%sspeed ", before);
        print_real(out, s->speed);
    }
}
