/*
 * The core of fakegpu-pods without a kubelet or a mount: ids, names, plans, frames, and hostile answers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "k8s/pods/kubelet.h"
#include "k8s/pods/podresources.pb-c.h"
#include "tests/tap.h"

static struct arena arena = ARENA_INIT;

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct mig_device migs[] = {
    { .gi = 1, .ci = 0, .uuid = "MIG-one" },
    { .gi = 2, .ci = 0, .uuid = "MIG-two" },
};

static struct gpu gpus[] = {
    { .minor = 4, .uuid = "GPU-a" },
    { .minor = 5, .uuid = "GPU-b" },
    { .minor = 6, .uuid = "GPU-c", .migs = migs, .mig_count = COUNT(migs) },
};

static const struct inventory node = { gpus, COUNT(gpus) };

/* --- ids ------------------------------------------------------------------------------------- */

/* "GPU UUID", or the error. */
static const char *found(const char *id)
{
    static char text[64];
    struct device d;
    int r = device_find(&node, id, &d);

    if (r < 0)
        snprintf(text, sizeof(text), "%s", strerror(-r));
    else
        snprintf(text, sizeof(text), "%d %s", d.gpu, d.uuid);
    return text;
}

static void test_ids(void)
{
    static const struct {
        const char *id, *found;
    } rows[] = {
        { "GPU-b", "1 GPU-b" },
        { "GPU-b::3", "1 GPU-b" },
        { "1", "1 GPU-b" },
        { "1::0", "1 GPU-b" },
        { "MIG-one", "2 MIG-one" },
        { "MIG-two::1", "2 MIG-two" },
        { "MIG-GPU-c/2/0", "2 MIG-two" },
        { "nvidia5", "1 GPU-b" },
        { "nvidia5/vgpu3", "1 GPU-b" },
        { "nvidia6/gi1", "2 MIG-one" },
        { "nvidia6/gi1/vgpu0", "2 MIG-one" },
        { "gpu-5", "1 GPU-b" },
        { "GPU-d", "No such device" },
        { "3", "No such device" },
        { "-1", "No such device" },
        { "", "No such device" },
        { "::1", "No such device" },
        { "MIG-three", "No such device" },
        { "MIG-GPU-c/2/1", "No such device" },
        { "MIG-GPU-c/2/0x", "No such device" },
        { "MIG-GPU-d/1/0", "No such device" },
        { "nvidia", "No such device" },
        { "nvidia7", "No such device" },
        { "nvidia5x", "No such device" },
        { "nvidia6/gi9", "No such device" },
        { "nvidia6/gi1x", "No such device" },
        { "gpu-", "No such device" },
        { "gpu-7", "No such device" },
        { "gpu-5x", "No such device" },
        { "gpu-6-mig-1g5gb-0", "No such device" },
        { "/dev/sda", "No such device" },
    };
    char longest[300];

    for (size_t i = 0; i < COUNT(rows); i++)
        is_str(found(rows[i].id), rows[i].found, "id '%s'", rows[i].id);
    memset(longest, 'G', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    is_str(found(longest), "No such device", "an id longer than any");
}

/* --- names ----------------------------------------------------------------------------------- */

static const char *name_for(const char *namespace, const char *pod, const char *container,
                            const char *uuid)
{
    static char names[32][PLAN_NAME];
    static unsigned next;
    char *name = names[next++ % 32];
    struct device d = { .uuid = uuid };

    plan_name(name, &(struct holder){ namespace, pod, container }, &(struct device_set){ &d, 1 });
    return name;
}

static bool is_ours(const char *name, const char *namespace, const char *pod, const char *container)
{
    return plan_is_ours(&(struct present){ name, { namespace, pod, container }, false });
}

static void test_names(void)
{
    const char *plain = name_for("default", "train-0", "main", "GPU-a");
    char pod[254], container[64], changed[PLAN_NAME];

    like(plain, "^pod-default-train-0-main-[0-9a-f]{12}$", "a name tells whose it is");
    is_str(name_for("default", "train-0", "main", "GPU-a"), plain, "and is always the same");
    ok(strcmp(name_for("default", "train-0", "main", "GPU-b"), plain),
       "other devices, another name");
    ok(strcmp(name_for("a", "b-c", "d", "GPU-a"), name_for("a-b", "c", "d", "GPU-a")),
       "where one part ends matters");
    ok(is_ours(plain, "default", "train-0", "main"), "it is known as ours");
    ok(is_ours(name_for("default", "train-0", "main", "GPU-b"), "default", "train-0", "main"),
       "on any device");
    ok(!is_ours(plain, "default", "train-1", "main"), "but not with another pod in it");
    ok(!is_ours("pod-default-train-0-main", "default", "train-0", "main"), "or without digits");
    snprintf(changed, sizeof(changed), "%s", plain);
    changed[strlen(changed) - 1] = 'z';
    ok(!is_ours(changed, "default", "train-0", "main"), "or with other digits");
    snprintf(changed, sizeof(changed), "%s0", plain);
    ok(!is_ours(changed, "default", "train-0", "main"), "or one more");

    memset(pod, 'p', sizeof(pod) - 1);
    pod[sizeof(pod) - 1] = '\0';
    memset(container, 'c', sizeof(container) - 1);
    container[sizeof(container) - 1] = '\0';
    is_int((int64_t)strlen(name_for(container, pod, container, "GPU-a")), 63,
           "the longest names are cut");
    ok(is_ours(name_for(container, pod, container, "GPU-a"), container, pod, container),
       "and known as ours");
    ok(strcmp(name_for(container, pod, container, "GPU-a"), name_for(container, pod, "x", "GPU-a")),
       "and differ where they were cut");
    like(name_for("a b", "../x", "\xc3\xa9", "GPU-a"), "^pod-a_b-.._x-__-[0-9a-f]{12}$",
         "what no name may hold is replaced");
}

/* --- plans ----------------------------------------------------------------------------------- */

#define CLAIM(ns, pod, container, ...)                               \
    {                                                                \
        { ns, pod, container }, (const char *[]){ __VA_ARGS__ },     \
            sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *) \
    }

/* The operations in words, then the problems. Good until the next call. */
static const char *planned_on(const struct inventory *inventory, const struct claim *claims,
                              size_t claim_count, const struct present *present,
                              size_t present_count)
{
    static struct text out;
    const struct claim_list c = { (struct claim *)claims, claim_count };
    const struct present_list p = { (struct present *)present, present_count };
    struct plan plan;

    text_cut(&out, 0);
    is_int(plan_make(&plan, &c, inventory, &p, &arena), 0, "a plan is made");
    for (size_t i = 0; i < plan.count; i++) {
        const struct operation *o = &plan.items[i];

        if (o->kind == OPERATION_REMOVE)
            text_addf(&out, "- %s: %s\n", o->name, o->reason);
        else
            text_addf(&out, "+ %s/%s/%s on %s\n", o->who.namespace, o->who.pod, o->who.container,
                      o->devices);
    }
    text_add(&out, text_str(&plan.problems));
    plan_release(&plan);
    return text_str(&out);
}

#define planned(claims, present) planned_on(&node, claims, COUNT(claims), present, COUNT(present))
#define planned_anew(claims) planned_on(&node, claims, COUNT(claims), NULL, 0)

static void test_creation(void)
{
    const struct claim claims[] = {
        CLAIM("ns", "two", "a", "0", "GPU-b", "GPU-a"),
        CLAIM("ns", "two", "b", "GPU-c"),
        CLAIM("ns", "mig", "main", "MIG-one", "MIG-two"),
        CLAIM("ns", "mixed", "main", "GPU-a", "MIG-two"),
        CLAIM("ns", "shared", "main", "GPU-a::0", "GPU-a::1"),
        CLAIM("ns", "half", "main", "GPU-a", "GPU-x"),
        CLAIM("ns", "none", "main", "GPU-x"),
        CLAIM("ns", "two", "a", "GPU-a", "1"),
    };

    is_str(planned_anew(claims),
           "+ ns/two/a on 0,1\n"
           "+ ns/two/b on 2\n"
           "+ ns/mig/main on 2:1:0,2:2:0\n"
           "+ ns/mixed/main on 0,2:2:0\n"
           "+ ns/shared/main on 0\n"
           "+ ns/half/main on 0\n"
           "ns/half/main: there is no GPU 'GPU-x' in the mount\n"
           "ns/none/main: there is no GPU 'GPU-x' in the mount\n",
           "each container has its own workload, on each of its devices once");
}

static void test_following(void)
{
    const struct claim claims[] = { CLAIM("ns", "pod", "main", "GPU-a") };
    const char *name = name_for("ns", "pod", "main", "GPU-a");
    const char *other = name_for("ns", "pod", "main", "GPU-b");
    const char *gone = name_for("ns", "gone", "main", "GPU-a");
    const struct present settled[] = { { name, { "ns", "pod", "main" }, false } };
    const struct present past[] = { { gone, { "ns", "gone", "main" }, false },
                                    { other, { "ns", "pod", "main" }, false } };
    const struct present others[] = {
        { "train", { "", "", "" }, false },
        { "pod-1", { "", "", "" }, false },
        { "pod-ns-gone-main", { "ns", "gone", "main" }, false },
        { name_for("ns", "else", "main", "GPU-a"), { "ns", "changed", "main" }, false },
        { name_for("ns", "gone", "x", "GPU-a"), { "", "", "" }, false },
    };
    char want[512];

    is_str(planned(claims, settled), "", "what is there is left alone");
    snprintf(want, sizeof(want),
             "- %s: the pod is gone\n- %s: the pod has other devices now\n"
             "+ ns/pod/main on 0\n",
             gone, other);
    is_str(planned(claims, past), want, "what is no longer so goes first");
    is_str(planned_on(&node, NULL, 0, others, COUNT(others)), "", "what others made stays");
}

static void test_own(void)
{
    const struct claim claims[] = { CLAIM("ns", "pod", "a", "0"), CLAIM("ns", "pod", "b", "1") };
    const char *name = name_for("ns", "pod", "a", "GPU-a");
    const struct present of_container[] = { { "mine", { "ns", "pod", "a" }, false } };
    const struct present of_pod[] = { { "mine", { "ns", "pod", "" }, false } };
    const struct present elsewhere[] = { { "mine", { "other", "pod", "a" }, false },
                                         { "base", { "", "", "" }, false } };
    const struct present later[] = { { name, { "ns", "pod", "a" }, false },
                                     { "mine", { "ns", "pod", "" }, false } };
    char want[256];

    is_str(planned(claims, of_container), "+ ns/pod/b on 1\n",
           "a container with a workload of its own gets none");
    is_str(planned(claims, of_pod), "", "one that names no container is for all of them");
    is_str(planned(claims, elsewhere), "+ ns/pod/a on 0\n+ ns/pod/b on 1\n",
           "another namespace's is not its own");
    snprintf(want, sizeof(want), "- %s: the pod has its own\n", name);
    is_str(planned(claims, later), want, "ours gives way when it comes later");
}

static void test_trouble(void)
{
    const struct claim claims[] = { CLAIM("ns", "pod", "main", "GPU-a") };
    const char *name = name_for("ns", "pod", "main", "GPU-a");
    const struct present unfinished[] = { { name, { "", "", "" }, false } };
    const struct present half[] = { { name, { "ns", "pod", "" }, false } };
    const struct present taken[] = { { name, { "ns", "another", "main" }, false } };
    const struct present ended[] = { { name, { "ns", "pod", "main" }, true } };
    char want[256];

    snprintf(want, sizeof(want), "- %s: it was left unfinished\n+ ns/pod/main on 0\n", name);
    is_str(planned(claims, unfinished), want, "one without names is made anew");
    is_str(planned(claims, half), want, "and one with half of them");
    snprintf(want, sizeof(want), "ns/pod/main: the workload '%s' is somebody else's\n", name);
    is_str(planned(claims, taken), want, "a name that somebody took is his");
    snprintf(want, sizeof(want), "- %s: its GPU is back\n+ ns/pod/main on 0\n", name);
    is_str(planned(claims, ended), want, "what a lost GPU ended starts again with it");
    gpus[0].lost = true;
    is_str(planned(claims, ended), "", "and not before");
    snprintf(want, sizeof(want), "ns/pod/main: a GPU of '%s' is lost\n", name);
    is_str(planned_anew(claims), want, "nothing is started on a lost GPU");
    gpus[0].lost = false;
    is_str(planned_on(&(struct inventory){ 0 }, claims, 1, ended, 1),
           (snprintf(want, sizeof(want),
                     "- %s: the pod has other devices now\n"
                     "ns/pod/main: there is no GPU 'GPU-a' in the mount\n",
                     name),
            want),
           "without GPUs there are no workloads");
}

/* --- what the kubelet says ------------------------------------------------------------------- */

static const char *const patterns[] = { "nvidia.com/gpu", "nvidia.com/mig-*", "gpu.nvidia.com",
                                        NULL };

/* "ns/pod/container=id,id " for each claim, or the sentence. */
static const char *decoded_for(const char *namespace, const char *pod, const void *bytes,
                               size_t length)
{
    const struct kubelet_query query = { patterns, namespace, pod };
    static struct text out;
    struct claim_list claims;
    struct why why = { 0 };

    text_cut(&out, 0);
    if (kubelet_decode((struct grpc_message){ bytes, length }, &query, &claims, &arena, &why) < 0)
        text_add(&out, why_text(&why));
    else
        for (size_t i = 0; i < claims.count; i++) {
            const struct claim *c = &claims.items[i];

            text_addf(&out, "%s/%s/%s=", c->who.namespace, c->who.pod, c->who.container);
            for (size_t k = 0; k < c->id_count; k++)
                text_addf(&out, k ? ",%s" : "%s", c->ids[k]);
            text_add(&out, " ");
        }
    why_release(&why);
    return text_str(&out);
}

static const char *decoded(const void *bytes, size_t length)
{
    return decoded_for("", "", bytes, length);
}

static void test_decoding(void)
{
    char *ids[] = { (char *)"GPU-a", (char *)"GPU-b" }, *more[] = { (char *)"MIG-one" },
         *cards[] = { (char *)"eth0" };
    V1__ContainerDevices lists[] = { V1__CONTAINER_DEVICES__INIT, V1__CONTAINER_DEVICES__INIT,
                                     V1__CONTAINER_DEVICES__INIT };
    V1__ContainerDevices *pointers[] = { &lists[0], &lists[1], &lists[2] };
    V1__ContainerResources containers[] = { V1__CONTAINER_RESOURCES__INIT,
                                            V1__CONTAINER_RESOURCES__INIT,
                                            V1__CONTAINER_RESOURCES__INIT };
    V1__ContainerResources *container_pointers[] = { &containers[0], &containers[1],
                                                     &containers[2] };
    V1__ClaimResource claimed[] = { V1__CLAIM_RESOURCE__INIT, V1__CLAIM_RESOURCE__INIT };
    V1__ClaimResource *claimed_pointers[] = { &claimed[0], &claimed[1] };
    V1__DynamicResource dynamic = V1__DYNAMIC_RESOURCE__INIT, *dynamics[] = { &dynamic };
    V1__PodResources pod = V1__POD_RESOURCES__INIT, *pods[] = { &pod };
    V1__ListPodResourcesResponse response = V1__LIST_POD_RESOURCES_RESPONSE__INIT;
    uint8_t bytes[512];
    size_t length;

    lists[0].resource_name = (char *)"nvidia.com/gpu";
    lists[0].device_ids = ids;
    lists[0].n_device_ids = 2;
    lists[1].resource_name = (char *)"nvidia.com/mig-1g.5gb";
    lists[1].device_ids = more;
    lists[1].n_device_ids = 1;
    lists[2].resource_name = (char *)"example.com/nic";
    lists[2].device_ids = cards;
    lists[2].n_device_ids = 1;
    containers[0].name = (char *)"main";
    containers[0].devices = pointers;
    containers[0].n_devices = 3;
    containers[1].name = (char *)"claims";
    containers[1].devices = &pointers[2];
    containers[1].n_devices = 1;
    claimed[0].driver_name = (char *)"net.example.com";
    claimed[0].device_name = (char *)"eth1";
    claimed[1].driver_name = (char *)"gpu.nvidia.com";
    claimed[1].device_name = (char *)"gpu-4";
    dynamic.claim_resources = claimed_pointers;
    dynamic.n_claim_resources = 2;
    containers[1].dynamic_resources = dynamics;
    containers[1].n_dynamic_resources = 1;
    containers[2].name = (char *)"idle";
    containers[2].devices = &pointers[2];
    containers[2].n_devices = 1;
    pod.namespace_ = (char *)"ns";
    pod.name = (char *)"pod";
    pod.containers = container_pointers;
    pod.n_containers = 3;
    response.pod_resources = pods;
    response.n_pod_resources = 1;
    length = v1__list_pod_resources_response__pack(&response, bytes);
    is_str(decoded(bytes, length), "ns/pod/main=GPU-a,GPU-b,MIG-one ns/pod/claims=gpu-4 ",
           "a container's GPUs, whatever resource they come by, and nothing else");
    is_str(decoded("", 0), "", "no pods");
    is_str(decoded_for("ns", "pod", bytes, length),
           "ns/pod/main=GPU-a,GPU-b,MIG-one ns/pod/claims=gpu-4 ", "a list with who asks is whole");
    is_str(decoded_for("other", "pod", bytes, length),
           "the kubelet does not know its pods yet: it does not list other/pod, which asks",
           "without it is not, though there be pods");
    is_str(decoded("\xff\xff", 2), "the kubelet's answer is not a list of pods (2 bytes)",
           "no message");

    /* Cut or changed anywhere it is refused or understood, never read beyond: the sanitizers watch. */
    for (size_t n = 0; n < length; n++) {
        uint8_t *copy = malloc(n + 1);

        memcpy(copy, bytes, n);
        decoded(copy, n);
        free(copy);
    }
    for (size_t n = 0; n < length; n++)
        for (int bit = 0; bit < 8; bit++) {
            bytes[n] ^= (uint8_t)(1 << bit);
            decoded(bytes, length);
            bytes[n] ^= (uint8_t)(1 << bit);
        }
    is_str(decoded(bytes, length), "ns/pod/main=GPU-a,GPU-b,MIG-one ns/pod/claims=gpu-4 ",
           "and goes on");
}

static void test_frames(void)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *said;
    } rows[] = {
        { "\0\0\0\0\0", 5, "" },
        { "\0\0\0\0\2ab", 7, "" },
        { "", 0, "ends in the middle" },
        { "\0\0\0\0", 4, "ends in the middle" },
        { "\1\0\0\0\2ab", 7, "compressed" },
        { "\0\0\0\0\3ab", 7, "message of 2 bytes in a frame of 3" },
        { "\0\0\0\0\1ab", 7, "message of 2 bytes in a frame of 1" },
        { "\0\xff\xff\xff\xff", 5, "message of 0 bytes in a frame of 4294967295" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct grpc_message m = { 0 };
        struct why why = { 0 };
        int r = grpc_unframe((const uint8_t *)rows[i].bytes, rows[i].length, &m, &why);

        is_int(r, *rows[i].said ? -EPROTO : 0, "frame %zu", i);
        if (r == 0)
            is_int((int64_t)m.length, (int64_t)rows[i].length - 5, "its message");
        else
            contains(why_text(&why), rows[i].said, "what is wrong with it");
        why_release(&why);
    }
}

int main(void)
{
    test_ids();
    test_names();
    test_creation();
    test_following();
    test_own();
    test_trouble();
    test_decoding();
    test_frames();
    arena_release(&arena);
    return tap_done();
}
