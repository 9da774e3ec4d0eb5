/*
 * The core of fakegpu-labels without a server or a mount: lists, notes, plans, JSON, tokens, and hostile answers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "k8s/labels/server.h"
#include "tests/tap.h"

static struct arena arena = ARENA_INIT;
static struct why why;
static struct text out;

/* The text so far, which is empty afterwards; good until the next. */
static const char *taken(void)
{
    static char *kept;

    free(kept);
    kept = strdup(text_str(&out));
    text_cut(&out, 0);
    return kept;
}

/* --- labels ---------------------------------------------------------------------------------- */

static const char *parsed(const char *text)
{
    struct label_list list;

    if (labels_parse(&list, text, 0, "the file", &arena, &why) < 0)
        return why_text(&why);
    labels_note(&out, &list);
    return taken();
}

static const char *noted(const char *note)
{
    struct label_list list;

    labels_read_note(&list, note, &arena);
    labels_note(&out, &list);
    return taken();
}

static void test_labels(void)
{
    static const struct {
        const char *text, *parsed;
    } rows[] = {
        { "", "" },
        { "a=1\nb.c/d=\n", "a=1,b.c/d=" },
        { "a=1\n\nb=2", "a=1,b=2" },
        { "a=1\nb\n", "line 2 of the file is not a label: key=value is expected" },
        { "=1\n", "line 1 of the file is not a label: key=value is expected" },
        { "a=1=2\n", "line 1 of the file is not a label: key=value is expected" },
        { "a=1 2\n", "line 1 of the file is not a label: key=value is expected" },
        { "a=1,b=2\n", "line 1 of the file is not a label: key=value is expected" },
        { "a=\x1b[0m\n", "line 1 of the file is not a label: key=value is expected" },
        { "a=1\nb=2\na=3\n", "line 3 of the file has a label that was there before" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is_str(parsed(rows[i].text), rows[i].parsed, "the file '%s'", rows[i].text);
    is_str(noted("a=1,b.c/d=,e=2"), "a=1,b.c/d=,e=2", "a note comes back");
    is_str(noted(",,a=1,nonsense,=x,a=2,b =3,c=4=5,\n,d=6,"), "a=1,d=6",
           "of one that somebody has changed what is right remains");
    is_str(noted(""), "", "an empty one has none");
}

/* --- plans ----------------------------------------------------------------------------------- */

/* Changes and the note behind them, of lists as notes have them. */
static const char *planned(const char *wanted, const char *present, const char *ours)
{
    struct label_list lists[3];
    struct plan plan;

    labels_read_note(&lists[0], wanted, &arena);
    labels_read_note(&lists[1], present, &arena);
    labels_read_note(&lists[2], ours, &arena);
    plan_make(&plan, &lists[0], &lists[1], &lists[2], &arena);
    for (size_t i = 0; i < plan.count; i++) {
        change_describe(&out, &plan.items[i]);
        text_add(&out, "; ");
    }
    text_add(&out, "ours: ");
    labels_note(&out, &plan.ours);
    return taken();
}

static void test_plans(void)
{
    is_str(planned("a=1,b=2", "", ""), "set a=1; set b=2; ours: a=1,b=2", "a new node");
    is_str(planned("a=1,b=2", "a=1,b=2,x=3", "a=1,b=2"), "ours: a=1,b=2", "one that has them");
    is_str(planned("a=2", "a=1", "a=1"), "set a=2 (was 1); ours: a=2", "another value");
    is_str(planned("a=1", "a=1,b=2", "a=1,b=2"), "remove b=2; ours: a=1", "one that is gone");
    is_str(planned("a=1", "a=1,b=3", "a=1,b=2"), "ours: a=1",
           "one that is gone, and was changed by somebody, is his");
    is_str(planned("a=1", "a=1", "a=1,b=2"), "ours: a=1", "one that is gone, and was removed");
    is_str(planned("a=1", "a=1", ""), "ours: ", "one that was there is not ours");
    is_str(planned("a=1", "a=1", "a=0"), "ours: ", "nor one that somebody has set since");
    is_str(planned("a=1", "a=5", ""), "set a=1 (was 5); ours: a=1",
           "but one with another value becomes ours");
    is_str(planned("", "a=1,b=2,x=3", "a=1,b=2"), "remove a=1; remove b=2; ours: ", "a removal");
    is_str(planned("", "", ""), "ours: ", "nothing");
}

/* --- JSON ------------------------------------------------------------------------------------ */

/* "labels|ours|note|version" of a node called n, or the sentence. */
static const char *node_of(const char *json)
{
    struct node node;

    if (node_read(&node, "n", json, strlen(json), &arena, &why) < 0)
        return why_text(&why);
    labels_note(&out, &node.labels);
    text_add(&out, "|");
    labels_note(&out, &node.ours);
    text_addf(&out, "|%s|%s", node.note ? node.note : "-", node.version ? node.version : "-");
    return taken();
}

static void test_nodes(void)
{
    static const char no_node[] = "the answer is not the node 'n'";
    static const struct {
        const char *json, *found;
    } rows[] = {
        { "{\"metadata\": {\"name\": \"n\"}}", "||-|-" },
        { "{\"metadata\": {\"name\": \"n\", \"labels\": null, \"annotations\": null}}", "||-|-" },
        { "{\"status\": {\"x\": [1.5, 123456789012]}, \"metadata\": {\"name\": \"n\", "
          "\"resourceVersion\": \"12\", \"labels\": {\"a\": \"1\"}, \"annotations\": "
          "{\"other\": \"x y\", \"fakegpufs.io/labels\": \"a=1,b\"}}}",
          "a=1|a=1|a=1,b|12" },
        { "{\"metadata\": {\"name\": \"n\", \"labels\": {\"\\u0061/b\": \"\\u0031\"}}}",
          "a/b=1||-|-" },
        { "{}", no_node },
        { "[]", no_node },
        { "{\"metadata\": []}", no_node },
        { "{\"metadata\": {\"name\": 1}}", no_node },
        { "{\"metadata\": {\"name\": \"m\"}}", no_node },
        { "{\"metadata\": {\"name\": \"n\", \"labels\": []}}", no_node },
        { "{\"metadata\": {\"name\": \"n\", \"labels\": {\"a\": null}}}", no_node },
        { "{\"metadata\": {\"name\": \"n\", \"labels\": {\"a\": \"\\n\"}}}", no_node },
        { "{\"metadata\": {\"name\": \"n\", \"resourceVersion\": 12}}", no_node },
        { "{\"metadata\": {\"name\": \"n\", \"annotations\": {\"fakegpufs.io/labels\": 1}}}",
          no_node },
    };
    static const char *const broken[] = { "",
                                          "{",
                                          "null",
                                          "{\"metadata\": {\"name\": \"n\", \"name\": \"n\"}}",
                                          "{\"metadata\": {\"name\": \"n\\u0000\"}}",
                                          "{\"metadata\": {\"name\": \"\xff\"}}",
                                          "{\"metadata\": {\"name\": \"n\"}} x" };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is_str(node_of(rows[i].json), rows[i].found, "the node %s", rows[i].json);
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        contains(node_of(broken[i]), "the answer is not JSON: line ", "what is no JSON: '%s'",
                 broken[i]);
}

static void test_depth(void)
{
    enum { DEEP = 1000000 };
    char *json = malloc(DEEP + 1);

    memset(json, '[', DEEP);
    json[DEEP] = '\0';
    contains(node_of(json), "the answer is not JSON", "a million brackets are refused");
    free(json);
}

static const char *patch_of(const char *wanted, const char *json)
{
    struct label_list list;
    struct node node;
    struct plan plan;
    int r = node_read(&node, "n", json, strlen(json), &arena, &why);

    labels_read_note(&list, wanted, &arena);
    if (r == 0)
        r = plan_make(&plan, &list, &node.labels, &node.ours, &arena);
    if (r == 0)
        r = node_patch(&out, &node, &plan);
    return r < 0 ? why_text(&why) : r == 0 ? "nothing" : taken();
}

#define NODE(labels, note)                                                              \
    "{\"metadata\": {\"name\": \"n\", \"resourceVersion\": \"9\", \"labels\": {" labels \
    "}, \"annotations\": {" note "}}}"

static void test_patches(void)
{
    is_str(
        patch_of("a=1", NODE("", "")),
        "{\"metadata\":{\"annotations\":{\"fakegpufs.io/labels\":\"a=1\"},\"labels\":{\"a\":\"1\"},"
        "\"resourceVersion\":\"9\"}}",
        "a label is set, and noted");
    is_str(patch_of("a=1", NODE("\"a\":\"1\"", "\"fakegpufs.io/labels\":\"a=1\"")), "nothing",
           "nothing is to be done");
    is_str(patch_of("", NODE("\"a\":\"1\",\"x\":\"2\"", "\"fakegpufs.io/labels\":\"a=1\"")),
           "{\"metadata\":{\"annotations\":{\"fakegpufs.io/labels\":null},\"labels\":{\"a\":null},"
           "\"resourceVersion\":\"9\"}}",
           "a label and the note go");
    is_str(patch_of("a=1", NODE("\"a\":\"1\"", "\"fakegpufs.io/labels\":\"a=1,b=2\"")),
           "{\"metadata\":{\"annotations\":{\"fakegpufs.io/labels\":\"a=1\"},\"labels\":{},"
           "\"resourceVersion\":\"9\"}}",
           "only the note is wrong");
    is_str(patch_of("", NODE("\"a\":\"1\"", "")), "nothing", "nobody else's label goes");
    is_str(
        patch_of("a=1", "{\"metadata\": {\"name\": \"n\"}}"),
        "{\"metadata\":{\"annotations\":{\"fakegpufs.io/labels\":\"a=1\"},\"labels\":{\"a\":\"1\"}}}",
        "a node without a version");
}

/* --- the server ------------------------------------------------------------------------------ */

static const char *status_of(const char *json)
{
    node_read_status(&out, json, strlen(json));
    return taken();
}

static const char *token_in(const char *text)
{
    return server_read_token(&out, text) < 0 ? "none" : taken();
}

static const char *quoted(const char *said, const char *token)
{
    server_quote(&out, said, token);
    return taken();
}

static void test_server(void)
{
    static const char *const bad[] = { "", " \n", "a b", "a\nb", "a\tb", "caf\xc3\xa9", "a\x7f" };

    is_str(status_of("{\"kind\": \"Status\", \"message\": \"no\"}"), "no", "a Status");
    is_str(status_of("<html>"), "", "no JSON has no message");
    is_str(status_of("[1]"), "", "nor has a list");
    is_str(status_of("{\"message\": 5}"), "", "nor a number");
    is_str(token_in("abc.DEF-_\n"), "abc.DEF-_", "a token");
    is_str(token_in("  abc\r\n"), "abc", "with blanks around it");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        is_str(token_in(bad[i]), "none", "no token: '%s'", bad[i]);
    is_str(quoted("a\nb\x1b[0m \xc3\xa9", "t"), "a b [0m \xc3\xa9", "what is said is one line");
    is_str(quoted("sec secret secrets", "secret"), "sec (token) (token)s", "without the token");
    is_str(quoted("said", ""), "said", "when there is one");
}

int main(void)
{
    test_labels();
    test_plans();
    test_nodes();
    test_depth();
    test_patches();
    test_server();
    text_release(&out);
    why_release(&why);
    arena_release(&arena);
    return tap_done();
}
