/*
 * Diff: what it prints leads from one text to the other, is as short as can be, and is none for the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/rng.h"
#include "sim/text.h"
#include "tests/tap.h"

static void is_diff(const char *before, const char *after, const char *want, const char *name)
{
    struct text out = TEXT_INIT;

    is_int(diff_texts(&out, "a", before, "b", after), 0, "%s: compared", name);
    is_str(text_str(&out), want, "%s: what it prints", name);
    text_release(&out);
}

static const char *line_end(const char *s)
{
    s += strcspn(s, "\n");
    return *s ? s + 1 : s;
}

/* Applies a unified diff to `before`, minding what it says of lines and their numbers. False: it does not fit. */
static bool apply(const char *before, const char *diff, struct text *after)
{
    int at = 1, from;

    if (!*diff) {
        text_add(after, before);
        return true;
    }
    diff = line_end(line_end(diff));
    while (*diff) {
        const char *end = line_end(diff);
        size_t n = (size_t)(end - diff);

        if (*diff == '@') {
            int lines;

            if (sscanf(diff, "@@ -%d,%d ", &from, &lines) != 2)
                return false;
            for (from += lines == 0; at < from; at++) {
                const char *next = line_end(before);

                text_addn(after, before, (size_t)(next - before));
                before = next;
            }
        } else if (*diff == '+') {
            text_addn(after, diff + 1, n - 1);
        } else {
            if (strncmp(before, diff + 1, n - 1))
                return false;
            if (*diff == ' ')
                text_addn(after, diff + 1, n - 1);
            before = line_end(before);
            at++;
        }
        diff = end;
    }
    text_add(after, before);
    return true;
}

static void random_text(struct text *out, struct rng *rng, int lines, unsigned letters)
{
    for (int i = 0; i < lines; i++)
        text_addf(out, "%c\n", (char)('a' + rng_next(rng) % letters));
}

/* The same with some lines taken out and some put in. */
static void changed_text(struct text *out, const char *text, struct rng *rng)
{
    while (*text) {
        const char *next = line_end(text);

        if (rng_next(rng) % 8)
            text_addn(out, text, (size_t)(next - text));
        if (rng_next(rng) % 8 == 0)
            text_addf(out, "%c\n", (char)('a' + rng_next(rng) % 5));
        text = next;
    }
}

static void test_random(void)
{
    struct rng rng = rng_seeded(1, "diff");
    int wrong = 0, changes = 0;

    for (int i = 0; i < 500; i++) {
        struct text before = TEXT_INIT, after = TEXT_INIT, diff = TEXT_INIT, got = TEXT_INIT;

        random_text(&before, &rng, (int)(rng_next(&rng) % 40), 5);
        changed_text(&after, text_str(&before), &rng);
        diff_texts(&diff, "a", text_str(&before), "b", text_str(&after));
        changes += diff.length > 0;
        if (!apply(text_str(&before), text_str(&diff), &got) ||
            strcmp(text_str(&got), text_str(&after)))
            wrong++;
        text_release(&before);
        text_release(&after);
        text_release(&diff);
        text_release(&got);
    }
    is_int(wrong, 0, "of 500 pairs of texts each diff leads from one to the other");
    ok(changes > 300, "most of them differ");
}

/* Beyond what is worth a search one replaces the other. */
static void test_large(void)
{
    struct text before = TEXT_INIT, after = TEXT_INIT, diff = TEXT_INIT, got = TEXT_INIT;

    for (int i = 0; i < 3000; i++) {
        text_addf(&before, "before %d\n", i);
        text_addf(&after, "after %d\n", i);
    }
    is_int(diff_texts(&diff, "a", text_str(&before), "b", text_str(&after)), 0,
           "two large texts without a line in common");
    ok(apply(text_str(&before), text_str(&diff), &got), "the diff fits");
    is_str(text_str(&got), text_str(&after), "and leads from one to the other");
    text_release(&before);
    text_release(&after);
    text_release(&diff);
    text_release(&got);
}

int main(void)
{
    is_diff("a\nb\n", "a\nb\n", "", "the same");
    is_diff("", "", "", "nothing");
    is_diff("", "a\n", "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+a\n", "something where nothing was");
    is_diff("a\n", "", "--- a\n+++ b\n@@ -1,1 +0,0 @@\n-a\n", "nothing where something was");
    is_diff("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8\n",
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
            "a line in the middle");
    is_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n",
            "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ntwelve\n",
            "--- a\n+++ b\n@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n"
            "-12\n+twelve\n",
            "both ends");
    test_random();
    test_large();
    return tap_done();
}
