/*
 * Every configuration of tests/bad is refused, at the right place, with the right words.
 *
 * A file there holds cases, each behind a line that says what must come of it:
 *
 *     --- # 3:5 EINVAL: gpus[1]: unknown key 'modle' in a GPU; did you mean 'model'?
 *     gpus:
 *       - model: T4
 *       - modle: T4
 *
 * line and column, errno, and what the sentence behind the place begins with. What stands before
 * the first such line, and blank lines at the end of a case, do not count.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/config.h"
#include "sim/library.h"
#include "tests/tap.h"

#define MARK "--- # "

enum { CASES_LEAST = 220 };

struct bad_case {
    char *place, *error, *words; /* what must come */
    const char *text;
    size_t length;
};

/* Splits "3:5 EINVAL: words" in place. */
static bool read_header(char *line, struct bad_case *c)
{
    c->place = line;
    c->error = strchr(line, ' ');
    c->words = c->error ? strstr(c->error, ": ") : NULL;
    if (!c->words)
        return false;
    *c->error++ = '\0';
    *c->words = '\0';
    c->words += 2;
    return true;
}

static size_t without_blank_lines(const char *text, size_t length)
{
    while (length > 1 && text[length - 1] == '\n' && text[length - 2] == '\n')
        length--;
    return length;
}

/* Takes the next case off *rest, which is "" at the end. Headers are cut up in place. */
static bool next_case(char **rest, struct bad_case *c)
{
    char *header = strstr(*rest, MARK), *body, *behind;

    if (!header)
        return false;
    body = strchr(header, '\n');
    if (!body)
        bail("a case without a text: %s", header);
    *body++ = '\0';
    if (!read_header(header + strlen(MARK), c))
        bail("not 'LINE:COLUMN ERRNO: words': %s", header);
    behind = strstr(body, "\n" MARK);
    c->text = body;
    c->length = without_blank_lines(body, behind ? (size_t)(behind + 1 - body) : strlen(body));
    *rest = behind ? behind + 1 : body + strlen(body);
    return true;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The sentence is "case:LINE:COLUMN: words…", on one line. */
static bool is_right(const struct bad_case *c, int r, const char *sentence)
{
    char *wanted;
    bool right;

    if (asprintf(&wanted, "case:%s: %s", c->place, c->words) < 0)
        bail("out of memory");
    right = r < 0 && !strcmp(strerrorname_np(-r), c->error) && begins(sentence, wanted) &&
            !strchr(sentence, '\n');
    free(wanted);
    return right;
}

static void try_case(const char *file, int number, const struct bad_case *c)
{
    struct config_options options = { .name = "case" };
    struct why why = { 0 };
    struct config cfg;
    int r = config_parse(&cfg, c->text, c->length, &options, &why);

    if (!ok(is_right(c, r, why_text(&why)), "%s %d: %s", file, number, c->words))
        diag("         got: %s %s\n    expected: %s case:%s: %s", r < 0 ? strerrorname_np(-r) : "0",
             why_text(&why), c->error, c->place, c->words);
    if (r == 0)
        config_release(&cfg);
    else if (config_parse(&cfg, c->text, c->length, &options, NULL) != r)
        ok(false, "%s %d: without a sentence it is another refusal", file, number);
    why_release(&why);
}

static int try_file(const char *path)
{
    struct why why = { 0 };
    struct bad_case c;
    unsigned long length;
    char *text, *rest;
    int count = 0;

    if (library_read_file(path, &text, &length, &why) < 0)
        bail("%s", why_text(&why));
    for (rest = text; next_case(&rest, &c);)
        try_case(strrchr(path, '/') + 1, ++count, &c);
    free(text);
    return count;
}

/* Texts too long to be written down. */
static void try_long_texts(void)
{
    enum { LONG = 100000 };
    char *text = malloc(LONG + 64);
    struct why why = { 0 };
    struct config cfg;

    if (!text)
        bail("out of memory");
    strcpy(text, "seed: 1\nnode: ");
    memset(text + 14, 'a', LONG);
    text[14 + LONG] = '\0';
    is_int(config_parse(&cfg, text, strlen(text), NULL, &why), -E2BIG, "a long name is refused");
    like(why_text(&why), "^config:2:7: node: 'a{60}…' is longer than 253 characters$",
         "… in a sentence that is short");
    strcpy(text, "step: ");
    memset(text + 6, '1', LONG);
    strcpy(text + 6 + LONG, "s");
    is_int(config_parse(&cfg, text, strlen(text), NULL, &why), -EINVAL, "so is a long number");
    like(why_text(&why), "^config:1:7: step: found '1{60}…'; allowed: a number with its unit$",
         "… likewise");
    why_release(&why);
    free(text);
}

/* Before, then so often the part, then behind. */
struct pile {
    const char *before, *part;
    int count;
    const char *behind;
    int error;
    const char *sentence;
};

static const struct pile piles[] = {
    { "gpus: {count: 4096, model: T4}\nworkloads:\n", "  - {devices: all}\n", 65, "", ERANGE,
      "config:67:15: workloads[64].devices: the workloads up to here take more than 262144 GPUs "
      "together" },
    { "gpus: {count: 4096, model: T4}\nfaults:\n", "  - {gpu: all, fault: hang}\n", 65, "", ERANGE,
      "config:67:11: faults[64].gpu: the faults up to here hit more than 262144 GPUs together" },
    { "workloads:\n  - activity: [", "{time: 1s}, ", 10001, "]\n", ERANGE,
      "config:2:15: workloads[0].activity: has 10001 phases; allowed: at most 10000" },
    { "workloads:\n  - activity: ", "80:0:1s,", 10000, "0\n", ERANGE,
      "config:2:15: workloads[0].activity: has 10001 phases; allowed: at most 10000" },
    { "gpus:\n  - metrics: {xid_last: {timeline: {phases: [", "{time: 1s, value: 1},", 10001,
      "]}}}\n", ERANGE,
      "config:2:45: gpus[0].metrics.xid_last.timeline.phases: has 10001 entries; allowed: at most "
      "10000" },
    { "profile: [", "idle, ", 4097, "]\n", ERANGE,
      "config:1:10: profile: has 4097 profiles; allowed: 1 to 4096" },
    { "gpus: [", "{}, ", 4097, "]\n", ERANGE,
      "config:1:7: gpus: has 4097 entries; allowed: at most 4096" },
    { "workloads: [", "{}, ", 16385, "]\n", ERANGE,
      "config:1:12: workloads: has 16385 entries; allowed: at most 16384" },
};

static char *heap_up(const struct pile *p)
{
    struct text out = TEXT_INIT;

    text_add(&out, p->before);
    for (int i = 0; i < p->count; i++)
        text_add(&out, p->part);
    text_add(&out, p->behind);
    return out.data;
}

static void try_piles(void)
{
    for (size_t i = 0; i < sizeof(piles) / sizeof(piles[0]); i++) {
        char *text = heap_up(&piles[i]);
        struct why why = { 0 };
        struct config cfg;

        is_int(config_parse(&cfg, text, strlen(text), NULL, &why), -piles[i].error,
               "%d times '%s' is too much", piles[i].count, piles[i].part);
        is_str(why_text(&why), piles[i].sentence, "… and the sentence says where");
        why_release(&why);
        free(text);
    }
}

int main(void)
{
    glob_t files;
    int count = 0;

    if (glob("tests/bad/*.yaml", 0, NULL, &files))
        bail("there is no tests/bad/*.yaml: tests run from the top of the tree");
    for (size_t i = 0; i < files.gl_pathc; i++)
        count += try_file(files.gl_pathv[i]);
    globfree(&files);
    ok(count >= CASES_LEAST, "%d bad configurations are at least %d", count, CASES_LEAST);
    try_long_texts();
    try_piles();
    return tap_done();
}
