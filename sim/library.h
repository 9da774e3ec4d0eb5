/*
 * Library: the YAML files of one folder of schemas/, built in or overridden by a directory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_LIBRARY_H
#define SIM_LIBRARY_H

struct arena;
struct binder;
struct why;
struct ynode;

/* Takes one file. The binder is set up for it, with the arena given to library_load. */
typedef int library_add(void *into, struct binder *b, const struct ynode *root);

/*
 * Gives every built-in file of `folder` ("models", "profiles") to `add`, then every *.yaml of the
 * directory `overrides`/`folder` where `overrides` is not NULL and has such a folder; sorted by name.
 */
int library_load(const char *folder, const char *overrides, struct arena *arena, library_add *add,
                 void *into, struct why *why);

/* Reads a whole file. The caller frees *text. -errno with a sentence. */
int library_read_file(const char *path, char **text, unsigned long *length, struct why *why);

#endif
