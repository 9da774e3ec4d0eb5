/*
 * Library: the YAML files of one folder of schemas/. See library.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/bind.h"
#include "sim/schemas.h"

enum { FILE_MAX = 16 << 20 };

/* Where files go, and who complains. */
struct loading {
    struct arena *arena;
    library_add *add;
    void *into;
    struct why *why;
};

static int add_text(const struct loading *to, const char *name, const char *text,
                    unsigned long length)
{
    struct binder b = { .file = name, .arena = to->arena, .why = to->why };
    struct ydoc doc;
    int r = ydoc_parse(&doc, name, text, length, to->why);

    if (r < 0)
        return r;
    r = to->add(to->into, &b, doc.root);
    ydoc_release(&doc);
    text_release(&b.path);
    return r;
}

static int add_builtin(const struct loading *to, const char *folder)
{
    size_t n = strlen(folder);

    for (const struct schema_file *f = schema_files; f->path; f++) {
        int r;

        if (strncmp(f->path, folder, n) || f->path[n] != '/')
            continue;
        r = add_text(to, f->path, f->text, f->length);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_all(int fd, const char *path, struct text *out, struct why *why)
{
    char chunk[16384];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
        text_addn(out, chunk, (size_t)n);
        if (out->length > FILE_MAX)
            return why_set(why, EFBIG, "%s: larger than %d MiB", path, FILE_MAX >> 20);
    }
    if (n < 0)
        return why_set(why, errno, "%s: %s", path, strerror(errno));
    return out->failed ? why_set(why, ENOMEM, "%s: out of memory", path) : 0;
}

int library_read_file(const char *path, char **text, unsigned long *length, struct why *why)
{
    struct text out = TEXT_INIT;
    int fd = open(path, O_RDONLY | O_CLOEXEC), r;

    if (fd < 0)
        return why_set(why, errno, "%s: %s", path, strerror(errno));
    r = read_all(fd, path, &out, why);
    close(fd);
    if (r < 0) {
        text_release(&out);
        return r;
    }
    if (!out.data)
        text_add(&out, ""); /* an empty file is still a text */
    *text = out.data;
    *length = out.length;
    return 0;
}

static int add_file(const struct loading *to, const char *path)
{
    unsigned long length;
    char *text;
    int r = library_read_file(path, &text, &length, to->why);

    if (r < 0)
        return r;
    r = add_text(to, path, text, length);
    free(text);
    return r;
}

static int is_yaml(const struct dirent *e)
{
    const char *dot = strrchr(e->d_name, '.');

    return e->d_name[0] != '.' && dot && !strcmp(dot, ".yaml");
}

int library_load(const char *folder, const char *overrides, struct arena *arena, library_add *add,
                 void *into, struct why *why)
{
    const struct loading to = { arena, add, into, why };
    struct dirent **names;
    struct text path = TEXT_INIT;
    int r = add_builtin(&to, folder), count;

    if (r < 0 || !overrides)
        return r;
    text_addf(&path, "%s/%s", overrides, folder);
    count = scandir(text_str(&path), &names, is_yaml, alphasort);
    if (count < 0) {
        r = errno == ENOENT && access(overrides, F_OK) == 0
                ? 0 /* a directory may override models only, or profiles only */
                : why_set(why, errno, "%s: %s", text_str(&path), strerror(errno));
        text_release(&path);
        return r;
    }
    for (int i = 0; i < count; i++) {
        text_cut(&path, strlen(overrides) + 1 + strlen(folder));
        text_addf(&path, "/%s", names[i]->d_name);
        if (r == 0)
            r = add_file(&to, text_str(&path));
        free(names[i]);
    }
    free(names);
    text_release(&path);
    return r;
}
