/*
 * "did you mean": slips of the keys are recognised, and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include <stdio.h>
#include <string.h>

#include "sim/suggest.h"
#include "sim/text.h"
#include "tests/tap.h"

static const char *const words[] = { "model",      "memory", "power_limit",     "H200",
                                     "H100-80GB",  "A10",    "A100-SXM4-40GB",  "random",
                                     "random-two", "T4",     "update_interval", NULL };

static void means(const char *found, const char *want)
{
    is_str(suggest_nearest(found, suggest_from_strings, words), want, "'%s' %s %s", found,
           want ? "means" : "means nothing", want ? want : "");
}

static void test_nearest(void)
{
    means("modle", "model");  /* two keys swapped */
    means("mdel", "model");   /* one left out */
    means("modell", "model"); /* one too many */
    means("nodel", "model");  /* one beside it */
    means("MODEL", "model");  /* another case */
    means("power-limit", "power_limit");
    means("Power Limit", "power_limit");
    means("update-intervall", "update_interval");
    means("H100", "H100-80GB"); /* begun rather than mistyped */
    means("A100", "A100-SXM4-40GB");
    means("RANDOM", "random"); /* whole before begun */
    means("T5", "T4");
    means("", NULL);
    means("x", NULL); /* one edit, but of one letter */
    means("T", NULL);
    means("mo", NULL);
    means("something", NULL);
    means("a-name-that-is-much-longer-than-any-that-could-be-meant-by-somebody-who-types", NULL);
}

static void adds(const char *found, const char *want)
{
    struct text out = TEXT_INIT;

    suggest_add(&out, found, suggest_from_strings, words);
    is_str(text_str(&out), want, "a hint for '%s'", found);
    text_release(&out);
}

static const char *numbered(const void *count, int i)
{
    static char name[16];

    snprintf(name, sizeof(name), "name-%03d", i);
    return i < *(const int *)count ? name : NULL;
}

static void test_lists(void)
{
    struct text out = TEXT_INIT;
    int many = 100;

    adds("T3", "; did you mean 'T4'? allowed: model, memory, power_limit, H200, H100-80GB, A10, "
               "A100-SXM4-40GB, random, random-two, T4, update_interval");
    adds("xyz", "; allowed: model, memory, power_limit, H200, H100-80GB, A10, A100-SXM4-40GB, "
                "random, random-two, T4, update_interval");
    suggest_add(&out, "quite different", numbered, &many);
    like(text_str(&out), "^; allowed: name-000, .*, name-039 and 60 more$", "a long list is cut");
    text_release(&out);
}

int main(void)
{
    test_nearest();
    test_lists();
    return tap_done();
}
