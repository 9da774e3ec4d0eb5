/*
 * Web config: TLS and users. See web_config.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/web_config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/users.h"
#include "sim/bind.h"
#include "sim/library.h"

/* --- the file -------------------------------------------------------------------------------- */

enum tls_version { TLS_UNSET = -1, TLS10, TLS11, TLS12, TLS13 };

static const char *const version_names[] = { "TLS10", "TLS11", "TLS12", "TLS13", NULL };

struct tls_section {
    struct bind_head head;
    char certificate[PATH_MAX];
    char key[PATH_MAX];
    int64_t min_version, max_version; /* enum tls_version */
};

struct http_section {
    struct bind_head head;
    int64_t http2; /* clients find out themselves that there is none */
};

struct web_file {
    struct bind_head head;
    struct tls_section tls;
    struct http_section http;
    struct users *users;
};

static int read_users(struct binder *b, const struct ynode *node, void *member)
{
    struct users *users;

    if (node->kind != YNODE_MAP)
        return bind_expected(b, node, "a mapping of names to bcrypt hashes");
    users = users_new();
    *(struct users **)member = users; /* whoever reads the file releases it, also when this fails */
    for (size_t i = 0; users && i < node->count; i++) {
        const struct ynode *hash = node->items[i];
        size_t path = bind_enter(b, node->keys[i]->text);

        if (hash->kind != YNODE_SCALAR || !users_is_hash(hash->text))
            return bind_refuse(b, EINVAL, hash,
                               "is not a bcrypt hash; allowed: $2y$…, as 'htpasswd -nB' makes it");
        if (users_add(users, node->keys[i]->text, hash->text) < 0)
            return bind_out_of_memory(b);
        bind_leave(b, path);
    }
    return users ? 0 : bind_out_of_memory(b);
}

static const struct bind_custom users_custom = {
    .read = read_users,
    .schema = "\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}",
};

static int check_tls(struct binder *b, const struct ynode *node, void *object)
{
    const struct tls_section *tls = object;

    if (tls->min_version > tls->max_version)
        return bind_refuse(b, EINVAL, node, "min_version is above max_version");
    return 0;
}

/* clang-format off */
static const struct bind_field tls_fields[] = {
    BIND_ROW_TEXT("cert_file", tls_section, certificate, BIND_REQUIRED, "Certificate, with those that signed it."),
    BIND_ROW_TEXT("key_file", tls_section, key, BIND_REQUIRED, "Its key."),
    BIND_ROW_CHOICE("min_version", tls_section, min_version, version_names, "Lowest version of TLS."),
    BIND_ROW_CHOICE("max_version", tls_section, max_version, version_names, "Highest version of TLS."),
    { 0 },
};
static const struct bind_table tls_table = { .what = "tls_server_config", .fields = tls_fields, .check = check_tls };

static const struct bind_field http_fields[] = {
    BIND_ROW_BOOL("http2", http_section, http2, "Makes no difference: HTTP/1.1 is what there is."),
    { 0 },
};
static const struct bind_table http_table = { .what = "http_server_config", .fields = http_fields };

static const struct bind_field web_fields[] = {
    BIND_ROW_STRUCT("tls_server_config", web_file, tls, &tls_table, "TLS."),
    BIND_ROW_STRUCT("http_server_config", web_file, http, &http_table, "HTTP."),
    BIND_ROW_CUSTOM("basic_auth_users", web_file, users, &users_custom, "Names and bcrypt hashes."),
    { 0 },
};
static const struct bind_table web_table = { .what = "a web config", .fields = web_fields };
/* clang-format on */

/* --- what follows from it -------------------------------------------------------------------- */

/* Only the versions from min to max, of GnuTLS' usual choice otherwise. */
static const char *make_priorities(struct arena *arena, const struct tls_section *tls)
{
    static const char *const names[] = { "1.0", "1.1", "1.2", "1.3" };
    struct text out = TEXT_INIT;
    const char *kept;

    text_add(&out, "NORMAL:-VERS-ALL");
    for (int64_t v = tls->min_version; v <= tls->max_version; v++)
        text_addf(&out, ":+VERS-TLS%s", names[v]);
    kept = out.failed ? NULL : arena_strndup(arena, text_str(&out), out.length);
    text_release(&out);
    return kept;
}

/* A file named in the config, which is relative to it. */
static int read_beside(const char *config, const char *name, char **text, struct why *why)
{
    const char *slash = strrchr(config, '/');
    struct text path = TEXT_INIT;
    unsigned long length;
    int r;

    if (*name != '/' && slash)
        text_addn(&path, config, (size_t)(slash - config) + 1);
    text_add(&path, name);
    r = library_read_file(text_str(&path), text, &length, why);
    text_release(&path);
    return r;
}

static int apply(struct web_config *c, const struct web_file *file, const char *path,
                 struct why *why)
{
    int r;

    c->users = file->users;
    if (!bind_is_set(&web_table, file, "tls_server_config"))
        return 0;
    c->priorities = make_priorities(&c->arena, &file->tls);
    if (!c->priorities)
        return why_set(why, ENOMEM, "out of memory");
    r = read_beside(path, file->tls.certificate, &c->certificate, why);
    return r < 0 ? r : read_beside(path, file->tls.key, &c->key, why);
}

int web_config_load(struct web_config *c, const char *path, struct why *why)
{
    struct binder b = { .file = path, .arena = &c->arena, .why = why };
    struct web_file *file;
    struct ydoc doc;
    unsigned long length;
    char *text;
    int r = library_read_file(path, &text, &length, why);

    *c = (struct web_config){ 0 };
    if (r < 0)
        return r;
    file = calloc(1, sizeof(*file));
    r = file ? ydoc_parse(&doc, path, text, length, why) : why_set(why, ENOMEM, "out of memory");
    if (r == 0) {
        file->tls.min_version = TLS12;
        file->tls.max_version = TLS13;
        r = bind_read(&b, &web_table, doc.root, file);
        if (r == 0)
            r = apply(c, file, path, why);
        else
            users_free(file->users);
        ydoc_release(&doc);
    }
    text_release(&b.path);
    free(file);
    free(text);
    if (r < 0)
        web_config_release(c);
    return r;
}

void web_config_release(struct web_config *c)
{
    if (c->key)
        explicit_bzero(c->key, strlen(c->key));
    free(c->key);
    free(c->certificate);
    users_free(c->users);
    arena_release(&c->arena);
    *c = (struct web_config){ 0 };
}
