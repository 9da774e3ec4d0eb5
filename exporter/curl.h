/*
 * Curl: libcurl, loaded when it is needed.
 *
 * With the twenty libraries that it needs itself it would double the exporter's start and memory, for something
 * that few ask for. Functions have the names of libcurl without curl_.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXPORTER_CURL_H
#define EXPORTER_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

struct why;

/* FUNCTION(result, name, parameters) */
/* clang-format off */
#define CURL_FUNCTIONS(FUNCTION)                                                       \
    FUNCTION(CURLcode, global_init, (long flags))                                      \
    FUNCTION(CURL *, easy_init, (void))                                                \
    FUNCTION(CURLcode, easy_setopt, (CURL *, CURLoption, ...))                         \
    FUNCTION(CURLcode, easy_getinfo, (CURL *, CURLINFO, ...))                          \
    FUNCTION(CURLcode, easy_perform, (CURL *))                                         \
    FUNCTION(void, easy_cleanup, (CURL *))                                             \
    FUNCTION(const char *, easy_strerror, (CURLcode))                                  \
    FUNCTION(struct curl_slist *, slist_append, (struct curl_slist *, const char *))   \
    FUNCTION(void, slist_free_all, (struct curl_slist *))                              \
    FUNCTION(CURLU *, url, (void))                                                     \
    FUNCTION(CURLUcode, url_set, (CURLU *, CURLUPart, const char *, unsigned))         \
    FUNCTION(CURLUcode, url_get, (CURLU *, CURLUPart, char **, unsigned))              \
    FUNCTION(void, url_cleanup, (CURLU *))                                             \
    FUNCTION(void, free, (void *))
/* clang-format on */

struct curl_api {
#define FUNCTION(result, name, parameters) result(*name) parameters;
    CURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* NULL with a sentence when there is no libcurl. It stays loaded. Not for several threads at once. */
const struct curl_api *curl_load(struct why *why);

#endif
