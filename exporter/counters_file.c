/*
 * Counters file: a list of counters that follows its file. See counters_file.h.
 *
 * Looks at the file's identity rather than waiting for events: a ConfigMap is swapped by a symbolic link two
 * directories up, which no watch of the file itself would see.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/counters_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/library.h"
#include "sim/schemas.h"
#include "sim/unit.h"
#include "sim/why.h"

struct counters_file {
    char *path; /* NULL: built in, never changes */
    struct stat seen;
    int64_t looked_ns;
    struct counter_list list;
};

static const struct schema_file *find_builtin(const char *name)
{
    static const char folder[] = "counters/";

    for (const struct schema_file *f = schema_files; f->path; f++)
        if (!strncmp(f->path, folder, strlen(folder)) && !strcmp(f->path + strlen(folder), name))
            return f;
    return NULL;
}

static int read_file(const struct counters_file *file, struct counter_list *list, struct why *why)
{
    unsigned long length;
    char *text;
    int r = library_read_file(file->path, &text, &length, why);

    if (r < 0)
        return r;
    r = counter_list_parse(list, file->path, text, why);
    free(text);
    return r;
}

struct counters_file *counters_file_open(const char *path, const char *builtin, struct why *why)
{
    struct counters_file *file = calloc(1, sizeof(*file));
    const struct schema_file *schema = path ? NULL : find_builtin(builtin);
    int r;

    if (file && path)
        file->path = strdup(path);
    if (!file || (path && !file->path)) {
        why_set(why, ENOMEM, "out of memory");
        free(file);
        return NULL;
    }
    if (path) {
        stat(path, &file->seen);
        r = read_file(file, &file->list, why);
    } else if (schema) {
        r = counter_list_parse(&file->list, schema->path, schema->text, why);
    } else {
        r = why_set(why, ENOENT, "there is no built-in counters file '%s'; give one with -f",
                    builtin);
    }
    if (r == 0)
        return file;
    free(file->path);
    free(file);
    return NULL;
}

void counters_file_close(struct counters_file *file)
{
    if (!file)
        return;
    counter_list_release(&file->list);
    free(file->path);
    free(file);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

int counters_file_reload(struct counters_file *file, int64_t now_ns, struct why *why)
{
    struct counter_list list;
    struct stat now;
    int r;

    if (!file->path || now_ns - file->looked_ns < NS_PER_S)
        return 0;
    file->looked_ns = now_ns;
    if (stat(file->path, &now) < 0 || is_same(&now, &file->seen))
        return 0;
    file->seen = now;
    r = read_file(file, &list, why);
    if (r < 0)
        return r;
    counter_list_release(&file->list);
    file->list = list;
    return 1;
}

const struct counter_list *counters_file_list(const struct counters_file *file)
{
    return &file->list;
}
