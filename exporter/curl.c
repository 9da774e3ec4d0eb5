/*
 * Curl: libcurl, loaded when it is needed. See curl.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/curl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "sim/why.h"

static void *open_library(void)
{
    /* One ABI by several names: which library does TLS for it is all the same here. */
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4",
                                         "libcurl-nss.so.4" };
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof(names) / sizeof(names[0]); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

const struct curl_api *curl_load(struct why *why)
{
    static struct curl_api api;
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define FUNCTION(result, name, parameters) { "curl_" #name, offsetof(struct curl_api, name) },
        CURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    void *library = open_library();

    if (!library) {
        why_set(why, ENOENT, "cannot send: there is no libcurl (%s)", dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(library, functions[i].name);

        if (!function) {
            why_set(why, ENOSYS, "cannot send: libcurl has no %s", functions[i].name);
            return NULL;
        }
        memcpy((char *)&api + functions[i].offset, &function, sizeof(function));
    }
    if (api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        why_set(why, EIO, "cannot send: libcurl does not start");
        return NULL;
    }
    return &api;
}
