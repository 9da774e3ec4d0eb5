/*
 * Stage: a mount namespace where a mount's files stand in the places of the system's own. See stage.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_NAME "" /* a pattern that no entry matches */

/* Where ldconfig keeps what it saw of libraries. */
#define LDCONFIG_CACHE "/var/cache"
#define LDCONFIG_NOTES LDCONFIG_CACHE "/ldconfig/aux-cache"

/* --- steps ----------------------------------------------------------------------------------- */

static int refuse(struct why *why, int err, const char *what, const char *path)
{
    return why_set(why, err, "cannot %s %s: %s", what, path, strerror(err));
}

static int make_directory(struct stage *s, const char *path, struct why *why)
{
    if (s->script)
        text_addf(s->script, "mkdir -p %s\n", path);
    else if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return refuse(why, errno, "make", path);
    return 0;
}

static int bind(struct stage *s, const char *from, const char *to, struct why *why)
{
    if (s->script)
        text_addf(s->script, "mount --rbind %s %s\n", from, to);
    else if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
        return refuse(why, errno, "mount on", to);
    return 0;
}

static bool exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static int copy_link(const char *from, const char *to)
{
    char target[PATH_MAX];
    ssize_t n = readlink(from, target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlink(target, to) < 0 ? -errno : 0;
}

static int make_file(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static bool is_of_root(const char *path)
{
    return !strncmp(path, STAGE_ROOT "/", strlen(STAGE_ROOT "/"));
}

/*
 * An entry of a directory, as a bind mount. What went away in between is left out, and so is what of the
 * system's own cannot be bound: the file of a mount that was removed, for one.
 */
static int graft_entry(const char *from, const char *to, struct why *why)
{
    struct stat st;
    int r;

    if (exists(to) || lstat(from, &st) < 0)
        return 0;
    if (S_ISLNK(st.st_mode))
        r = copy_link(from, to);
    else if (S_ISDIR(st.st_mode))
        r = mkdir(to, 0755) < 0 ? -errno : 0;
    else
        r = make_file(to);
    if (r < 0)
        return refuse(why, -r, "make", to);
    if (S_ISLNK(st.st_mode) || mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0)
        return 0;
    if (is_of_root(from))
        return refuse(why, errno, "mount on", to);
    remove(to);
    return 0;
}

/* What `from` has, `to` has as well, except for names that match `skip` and what is there already. */
static int graft(struct stage *s, const char *from, const char *to, const char *skip,
                 struct why *why)
{
    struct text a = TEXT_INIT, b = TEXT_INIT;
    struct dirent *entry;
    DIR *dir;
    int r = 0;

    if (s->script) {
        text_addf(s->script, "graft %s %s '%s'\n", from, to, skip);
        return 0;
    }
    dir = opendir(from);
    if (!dir)
        return refuse(why, errno, "read", from);
    while (r == 0 && (entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            fnmatch(skip, entry->d_name, 0) == 0)
            continue;
        text_cut(&a, 0);
        text_cut(&b, 0);
        text_addf(&a, "%s/%s", from, entry->d_name);
        text_addf(&b, "%s/%s", to, entry->d_name);
        r = graft_entry(text_str(&a), text_str(&b), why);
    }
    closedir(dir);
    text_release(&a);
    text_release(&b);
    return r;
}

static const char graft_in_shell[] =
    "graft() {\n"
    "    for from in \"$1\"/* \"$1\"/.[!.]*; do\n"
    "        name=${from##*/} to=$2/${from##*/}\n"
    "        case $name in $3) continue ;; esac\n"
    "        if [ -e \"$to\" ] || [ -L \"$to\" ]; then continue; fi\n"
    "        if [ -L \"$from\" ]; then cp -P \"$from\" \"$to\"; continue; fi\n"
    "        if [ ! -e \"$from\" ]; then continue; fi\n"
    "        if [ -d \"$from\" ]; then mkdir \"$to\"; else : > \"$to\"; fi\n"
    "        mount --rbind \"$from\" \"$to\" || rm -d \"$to\"\n"
    "    done\n"
    "}\n";

/* A directory of the system, built anew on the stage: the mount's entries, then its own. */
static int rebuild(struct stage *s, const char *system, const char *of_root, const char *skip,
                   struct why *why)
{
    struct text there = TEXT_INIT;
    int r;

    text_addf(&there, "%s%s", s->place, system);
    if (s->script) {
        text_addf(s->script, "mkdir -p %s\n", text_str(&there));
        r = 0;
    } else {
        char *path = there.data;

        for (char *slash = path + strlen(s->place); (slash = strchr(slash + 1, '/'));
             *slash = '/') {
            *slash = '\0';
            mkdir(path, 0755);
        }
        r = mkdir(path, 0755) < 0 && errno != EEXIST ? refuse(why, errno, "make", path) : 0;
    }
    if (r == 0 && of_root)
        r = graft(s, of_root, text_str(&there), NO_NAME, why);
    if (r == 0)
        r = graft(s, system, text_str(&there), skip, why);
    text_release(&there);
    return r;
}

static int put_in_place(struct stage *s, const char *system, struct why *why)
{
    struct text there = TEXT_INIT;
    int r;

    text_addf(&there, "%s%s", s->place, system);
    r = bind(s, text_str(&there), system, why);
    text_release(&there);
    return r;
}

static int replace(struct stage *s, const char *system, const char *of_root, const char *skip,
                   struct why *why)
{
    int r = rebuild(s, system, of_root, skip, why);

    return r < 0 ? r : put_in_place(s, system, why);
}

/* --- setting ---------------------------------------------------------------------------------- */

/* Directories that every system has and that nothing which is built here comes from. */
static const char *pick_place(const char *root)
{
    static const char *const places[] = { "/mnt", "/media", "/srv", "/opt", NULL };

    for (int i = 0; places[i]; i++)
        if (strncmp(root, places[i], strlen(places[i])) && access(places[i], F_OK) == 0)
            return places[i];
    return NULL;
}

int stage_open(struct stage *s, const char *root, struct why *why)
{
    s->place = pick_place(root);
    if (!s->place)
        return why_set(why, ENOENT, "there is neither /mnt nor /media, /srv or /opt to build in");
    if (s->script)
        text_addf(s->script, "mount -t tmpfs -o mode=755 fakegpufs %s\n%s", s->place,
                  graft_in_shell);
    else if (mount("fakegpufs", s->place, "tmpfs", MS_NOSUID, "mode=755") < 0)
        return refuse(why, errno, "mount a tmpfs on", s->place);
    return 0;
}

int stage_make_root(struct stage *s, struct why *why)
{
    struct text there = TEXT_INIT;
    int r = 0;

    if (access(STAGE_ROOT, F_OK) == 0)
        return 0;
    if (access("/run", F_OK) < 0)
        return why_set(why, ENOENT, "there is no /run here");
    text_addf(&there, "%s" STAGE_ROOT, s->place);
    r = rebuild(s, "/run", NULL, NO_NAME, why);
    if (r == 0)
        r = make_directory(s, text_str(&there), why);
    if (r == 0)
        r = put_in_place(s, "/run", why);
    text_release(&there);
    return r;
}

int stage_bind_root(struct stage *s, const char *root, struct why *why)
{
    char *real = realpath(root, NULL);
    int r = real && !strcmp(real, STAGE_ROOT) ? 0 : stage_make_root(s, why);

    if (r == 0 && !(real && !strcmp(real, STAGE_ROOT)))
        r = bind(s, root, STAGE_ROOT, why);
    free(real);
    return r;
}

/* --- dressing --------------------------------------------------------------------------------- */

/* PCI roots that the system has as well get the devices of both. */
static int merge_pci_roots(struct stage *s, struct why *why)
{
    DIR *dir = s->script ? NULL : opendir(STAGE_ROOT "/sys/devices");
    struct text ours = TEXT_INIT, theirs = TEXT_INIT;
    struct dirent *entry;
    int r = 0;

    if (s->script)
        text_addf(s->script,
                  "for root in " STAGE_ROOT "/sys/devices/pci*; do\n"
                  "    name=${root##*/}\n"
                  "    if [ ! -d /sys/devices/$name ]; then continue; fi\n"
                  "    mkdir -p %s/sys/devices/$name\n"
                  "    graft $root %s/sys/devices/$name ''\n"
                  "    graft /sys/devices/$name %s/sys/devices/$name ''\n"
                  "done\n",
                  s->place, s->place, s->place);
    while (r == 0 && dir && (entry = readdir(dir))) {
        text_cut(&ours, 0);
        text_cut(&theirs, 0);
        text_addf(&ours, STAGE_ROOT "/sys/devices/%s", entry->d_name);
        text_addf(&theirs, "/sys/devices/%s", entry->d_name);
        if (!strncmp(entry->d_name, "pci", 3) && exists(text_str(&theirs)))
            r = rebuild(s, text_str(&theirs), text_str(&ours), NO_NAME, why);
    }
    if (dir)
        closedir(dir);
    text_release(&ours);
    text_release(&theirs);
    return r;
}

/* Where a machine has no PCI bus of its own there is no directory to bind over. */
static int dress_sys(struct stage *s, struct why *why)
{
    int r = merge_pci_roots(s, why);

    if (r == 0)
        r = replace(s, "/sys/devices", STAGE_ROOT "/sys/devices", NO_NAME, why);
    if (r == 0 && access("/sys/bus/pci", F_OK) == 0)
        r = bind(s, STAGE_ROOT "/sys/bus/pci", "/sys/bus/pci", why);
    else if (r == 0)
        r = replace(s, "/sys/bus", STAGE_ROOT "/sys/bus", NO_NAME, why);
    if (r == 0 && access("/sys/module", F_OK) == 0)
        r = replace(s, "/sys/module", STAGE_ROOT "/sys/module", "nvidia*", why);
    return r;
}

static int dress_proc(struct stage *s, struct why *why)
{
    static const char *const files[] = { "/proc/devices", "/proc/modules", NULL };
    int r = replace(s, "/proc/driver", STAGE_ROOT "/proc/driver", "nvidia*", why);

    for (int i = 0; r == 0 && files[i]; i++) {
        struct text ours = TEXT_INIT;

        text_addf(&ours, STAGE_ROOT "%s", files[i]);
        if (access(files[i], F_OK) == 0)
            r = bind(s, text_str(&ours), files[i], why);
        text_release(&ours);
    }
    return r;
}

/* --- the loader ------------------------------------------------------------------------------- */

static const char *find_ldconfig(void)
{
    static const char *const places[] = { "/sbin/ldconfig", "/usr/sbin/ldconfig", NULL };

    for (int i = 0; places[i]; i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static int run_ldconfig(const char *ldconfig, const char *conf, const char *cache)
{
    pid_t child = fork();
    int status = 1;

    if (child == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execl(ldconfig, ldconfig, "-X", "-f", conf, "-C", cache, (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : -1;
}

static void copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out;

    if (in < 0)
        return;
    out = open(to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    while (out >= 0 && sendfile(out, in, NULL, 1 << 20) > 0)
        ;
    if (out >= 0)
        close(out);
    close(in);
}

/*
 * ldconfig notes what it saw of libraries in a file of the system's, and waits until that is on the disk: on
 * one that is busy, for seconds. It gets a copy of the notes, which goes with the stage.
 */
static bool shield_notes(struct stage *s)
{
    struct text there = TEXT_INIT, notes = TEXT_INIT;
    bool shielded = false;

    text_addf(&there, "%s/cache", s->place);
    text_addf(&notes, "%s/ldconfig", text_str(&there));
    if (s->script) {
        text_addf(s->script,
                  "mkdir -p %s\n"
                  "cp " LDCONFIG_NOTES " %s 2>/dev/null || :\n"
                  "mount --bind %s " LDCONFIG_CACHE "\n",
                  text_str(&notes), text_str(&notes), text_str(&there));
        shielded = true;
    } else if (mkdir(text_str(&there), 0755) == 0 && mkdir(text_str(&notes), 0700) == 0) {
        text_add(&notes, "/aux-cache");
        copy_file(LDCONFIG_NOTES, text_str(&notes));
        shielded = mount(text_str(&there), LDCONFIG_CACHE, NULL, MS_BIND, NULL) == 0;
    }
    text_release(&there);
    text_release(&notes);
    return shielded;
}

static void unshield_notes(struct stage *s)
{
    if (s->script)
        text_add(s->script, "umount " LDCONFIG_CACHE "\n");
    else
        umount2(LDCONFIG_CACHE, MNT_DETACH);
}

/*
 * A cache of its own, with the mount's libraries first, for programs that LD_LIBRARY_PATH does not reach.
 * Where the system has no such cache the variable has to do.
 */
static int dress_loader(struct stage *s, struct why *why)
{
    const char *ldconfig = find_ldconfig();
    struct text conf = TEXT_INIT, cache = TEXT_INIT;
    bool shielded, made = false;
    FILE *f;
    int r = 0;

    if (!ldconfig || access("/etc/ld.so.cache", F_OK) < 0)
        return 0;
    text_addf(&conf, "%s/ld.so.conf", s->place);
    text_addf(&cache, "%s/ld.so.cache", s->place);
    shielded = access(LDCONFIG_CACHE, F_OK) == 0 && shield_notes(s);
    if (s->script) {
        text_addf(s->script,
                  "printf '%%s\\n' " STAGE_ROOT "/usr/lib64 'include /etc/ld.so.conf' > %s\n"
                  "%s -X -f %s -C %s\n",
                  text_str(&conf), ldconfig, text_str(&conf), text_str(&cache));
        made = true;
    } else if ((f = fopen(text_str(&conf), "we"))) {
        fputs(STAGE_ROOT "/usr/lib64\ninclude /etc/ld.so.conf\n", f);
        fclose(f);
        made = run_ldconfig(ldconfig, text_str(&conf), text_str(&cache)) == 0;
    }
    if (shielded)
        unshield_notes(s);
    if (made)
        r = bind(s, text_str(&cache), "/etc/ld.so.cache", why);
    text_release(&conf);
    text_release(&cache);
    return r;
}

int stage_dress(struct stage *s, struct why *why)
{
    int r = replace(s, "/dev", STAGE_ROOT "/dev", "nvidia*", why);

    if (r == 0)
        r = dress_proc(s, why);
    if (r == 0)
        r = dress_sys(s, why);
    return r < 0 ? r : dress_loader(s, why);
}

void stage_close(struct stage *s)
{
    if (s->script)
        text_addf(s->script, "umount -l %s\n", s->place);
    else
        umount2(s->place, MNT_DETACH);
}
