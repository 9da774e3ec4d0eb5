/*
 * Stage, the way to it: a mount namespace of one's own, with a user namespace where that takes one, or the sentence that
 * says who forbids it. See stage.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fusefs/cli/stage.h"

static bool file_says(const char *path, const char *value)
{
    char text[32] = "";
    FILE *f = fopen(path, "re");
    bool says = f && fscanf(f, "%31s", text) == 1 && !strcmp(text, value);

    if (f)
        fclose(f);
    return says;
}

static bool is_filtered(void)
{
    char line[128];
    FILE *f = fopen("/proc/self/status", "re");
    bool filtered = false;

    while (f && fgets(line, sizeof(line), f))
        filtered |= !strcmp(line, "Seccomp:\t2\n");
    if (f)
        fclose(f);
    return filtered;
}

/* Who forbids a user namespace, as far as it can be known. */
static const char *who_forbids(int err)
{
    static const struct {
        const char *file, *value, *sentence;
    } switches[] = {
        { "/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0" },
        { "/proc/sys/kernel/unprivileged_userns_clone", "0",
          "kernel.unprivileged_userns_clone is 0" },
        { "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
          "kernel.apparmor_restrict_unprivileged_userns is 1" },
    };

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
        if (file_says(switches[i].file, switches[i].value))
            return switches[i].sentence;
    if (err == EPERM && is_filtered())
        return "a seccomp filter, as containers have it, forbids it";
    return strerror(err);
}

static int forbidden(struct why *why, int err)
{
    return why_set(why, EPERM,
                   "a mount namespace is needed: CAP_SYS_ADMIN is missing, and so is a user "
                   "namespace: %s",
                   who_forbids(err));
}

static int write_map(const char *path, unsigned id)
{
    FILE *f = fopen(path, "we");

    if (!f)
        return -errno;
    fprintf(f, "%u %u 1\n", id, id);
    return fclose(f) == 0 ? 0 : -errno;
}

/* Whoever he is outside he is inside. */
static int map_self(uid_t uid, gid_t gid)
{
    FILE *f = fopen("/proc/self/setgroups", "we");
    int r;

    if (f) {
        fputs("deny", f);
        fclose(f);
    }
    r = write_map("/proc/self/uid_map", uid);
    return r < 0 ? r : write_map("/proc/self/gid_map", gid);
}

int stage_enter(struct stage *s, struct why *why)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int r = 0;

    if (s->script) {
        s->in_user_namespace = uid != 0;
        text_add(s->script, "mount --make-rslave /\n");
        return 0;
    }
    if (unshare(CLONE_NEWNS) < 0) {
        if (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
            return forbidden(why, errno);
        s->in_user_namespace = true;
        r = map_self(uid, gid);
    }
    /* What is mounted here stays here; what others mount still arrives. */
    if (r == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        r = -errno;
    return r < 0 ? forbidden(why, -r) : 0;
}

/* A program that is not root's loses its capabilities at exec, but for those that are ambient. */
void stage_lend_privilege(const struct stage *s)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

    if (!s->in_user_namespace || syscall(SYS_capget, &head, sets) < 0)
        return;
    sets[CAP_TO_INDEX(CAP_SYS_ADMIN)].inheritable |= CAP_TO_MASK(CAP_SYS_ADMIN);
    if (syscall(SYS_capset, &head, sets) == 0)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
}
