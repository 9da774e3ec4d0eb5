/*
 * A document becomes a tree with positions, and what is more than a tree of texts is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/text.h"
#include "sim/why.h"
#include "sim/yaml.h"
#include "tests/tap.h"

/* Parses, or gives up: for texts that are right. */
static struct ydoc parse(const char *text)
{
    struct why why = { 0 };
    struct ydoc doc;

    if (ydoc_parse(&doc, "doc", text, strlen(text), &why) < 0)
        bail("%s", why_text(&why));
    return doc;
}

static void stands_at(const struct ynode *node, int line, int column, const char *name)
{
    ok(node && node->line == line && node->column == column, "%s stands at %d:%d, not %d:%d", name,
       line, column, node ? node->line : 0, node ? node->column : 0);
}

static void test_tree(void)
{
    struct ydoc doc = parse("# a comment\n"
                            "name: a text\n"
                            "list:\n"
                            "  - one\n"
                            "  - {inner: 'two', other: [3, 4]}\n"
                            "empty:\n"
                            "block: |\n"
                            "  several\n"
                            "  lines\n");
    const struct ynode *list = ynode_get(doc.root, "list"), *map = list->items[1];

    is_int(doc.root->kind, YNODE_MAP, "the root is a mapping");
    is_int(doc.root->count, 4, "… of four keys");
    stands_at(doc.root, 2, 1, "the root");
    is_str(ynode_get(doc.root, "name")->text, "a text", "a plain scalar keeps its blanks");
    stands_at(ynode_get(doc.root, "name"), 2, 7, "a value");
    stands_at(ynode_key(doc.root, "list"), 3, 1, "a key");
    is_int(list->kind, YNODE_LIST, "a list is a list");
    stands_at(list, 4, 3, "a list");
    stands_at(list->items[0], 4, 5, "an item");
    stands_at(map, 5, 5, "a flow mapping");
    stands_at(ynode_get(map, "inner"), 5, 13, "a value in a flow mapping");
    ok(ynode_get(map, "inner")->quoted, "quotes are noticed");
    stands_at(ynode_get(map, "other")->items[1], 5, 31, "an item of a flow list");
    ok(ynode_is_null(ynode_get(doc.root, "empty")), "a key without value has nothing");
    stands_at(ynode_get(doc.root, "empty"), 6, 7, "nothing");
    is_str(ynode_get(doc.root, "block")->text, "several\nlines\n", "a block keeps its lines");
    ok(ynode_get(doc.root, "nowhere") == NULL, "a key that is not there has no value");
    ok(ynode_key(doc.root, "nowhere") == NULL, "… and no place");
    ok(ynode_get(list, "name") == NULL, "a list has no keys");
    ydoc_release(&doc);
}

static void test_columns_are_characters(void)
{
    struct ydoc doc = parse("{käse: brot, wein: 1}");

    stands_at(ynode_get(doc.root, "wein"), 1, 20, "what follows an umlaut");
    ydoc_release(&doc);
}

static void test_nulls(void)
{
    struct ydoc doc = parse("[~, null, Null, NULL, '', \"null\", nul, {}, []]");

    for (size_t i = 0; i < doc.root->count; i++)
        ok(ynode_is_null(doc.root->items[i]) == (i < 4), "'%s' is %snothing",
           doc.root->items[i]->text ? doc.root->items[i]->text : "a collection",
           i < 4 ? "" : "something, not ");
    ok(ynode_is_null(NULL), "no node at all is nothing, too");
    ydoc_release(&doc);
}

static void test_empty(void)
{
    struct ydoc doc = parse("");

    ok(doc.root == NULL, "an empty text has no root");
    ydoc_release(&doc);
    doc = parse("# only a comment\n");
    ok(doc.root == NULL, "neither has a comment");
    ydoc_release(&doc);
    doc = parse("---\n");
    ok(ynode_is_null(doc.root), "an empty document is nothing");
    ydoc_release(&doc);
    doc = parse("---\na: 1\n...\n");
    is_str(ynode_get(doc.root, "a")->text, "1", "a document may have its marks");
    ydoc_release(&doc);
}

static void test_aliases(void)
{
    struct ydoc doc = parse("base: &b {x: 1}\n"
                            "same: *b\n"
                            "new: &b [2, 3]\n"
                            "list: [*b, *b]\n"
                            "word: &w hello\n"
                            "*w : again\n");
    const struct ynode *list = ynode_get(doc.root, "list");

    ok(ynode_get(doc.root, "same") == ynode_get(doc.root, "base"), "an alias is its anchor's node");
    stands_at(ynode_get(doc.root, "same"), 1, 7, "it");
    ok(list->items[0] == ynode_get(doc.root, "new"), "the newest anchor of a name counts");
    is_int(list->weight, 7, "each use of an alias weighs what it stands for");
    is_str(ynode_get(doc.root, "hello")->text, "again", "a key may be an alias");
    ydoc_release(&doc);
}

static void is_refused(const char *text, size_t length, int error, const char *regex,
                       const char *name)
{
    struct why why = { 0 };
    struct ydoc doc;

    is_int(ydoc_parse(&doc, "doc", text, length, &why), -error, "%s: refused", name);
    like(why_text(&why), regex, "%s: at the right place, with the right words", name);
    ok(doc.root == NULL && doc.arena.chunks == NULL, "%s: nothing is left behind", name);
    why_release(&why);
}

static void refused(const char *text, int error, const char *regex, const char *name)
{
    is_refused(text, strlen(text), error, regex, name);
}

static void test_refusals(void)
{
    refused("a: 1\nb: 2\na: 3\n", EINVAL, "^doc:3:1: duplicate key 'a', first given at line 1$",
            "a duplicate key");
    refused("x:\n  a: 1\n  'a': 3\n", EINVAL, "^doc:3:3: duplicate key 'a', first given at line 2$",
            "a duplicate in quotes");
    refused("{a: 1, a: 2}", EINVAL, "^doc:1:8: duplicate key 'a'", "a duplicate in a flow mapping");
    refused("a: &x 1\n*x : 2\n1: 3\n", EINVAL, "^doc:3:1: duplicate key '1'",
            "a duplicate through an alias");
    refused("a: !!str 1", EINVAL, "^doc:1:4: tags are not allowed$", "a tag of YAML");
    refused("a: !mine {b: 1}", EINVAL, "^doc:1:4: tags are not allowed$", "a tag on a mapping");
    refused("- ! x", EINVAL, "^doc:1:3: tags are not allowed$", "the bare tag");
    refused("a: 1\n---\nb: 2\n", EINVAL, "^doc:2:1: only one document is allowed$",
            "a second document");
    refused("---\n---\n", EINVAL, "^doc:2:1: only one document is allowed$",
            "a second empty document");
    refused("[a]: 1", EINVAL, "^doc:1:1: a key must be plain text$", "a list as key");
    refused("? {a: 1}\n: 2", EINVAL, "^doc:1:3: a key must be plain text$", "a mapping as key");
    refused("a: &l [1]\n*l : 2\n", EINVAL, "^doc:2:1: a key must be plain text$",
            "a list as key through an alias");
    refused("a: *b", EINVAL, "^doc:1:4: no anchor '&b' stands before this alias$",
            "an alias of nothing");
    refused("a: &a [*a]", EINVAL, "^doc:1:8: no anchor '&a' stands before", "a list in itself");
    refused("a: \"x\\0y\"", EINVAL, "^doc:1:4: a NUL character is not allowed$", "an escaped NUL");
    refused("\"x\\0y\": 1", EINVAL, "^doc:1:1: a NUL character is not allowed$", "a NUL in a key");
    refused("a: [1, 2\nb: 3\n", EINVAL,
            "^doc:2:2: not valid YAML: .* while parsing a flow sequence that begins at line 1$",
            "an open bracket");
    refused("a: 1\nb\nc: 2\n", EINVAL, "^doc:2:1: not valid YAML: could not find expected ':'",
            "a key without colon");
    refused("a: 'x\n\n\n", EINVAL, "unexpected end of stream .* that begins at line 1$",
            "an open quote");
    refused("a:\n\t- 1\n", EINVAL, "^doc:2:1: not valid YAML: found character that cannot start",
            "a tab");
}

static void test_bytes(void)
{
    char far[5000];

    is_refused("a: 1\nb: x\0y\n", 12, EINVAL, "^doc:2:5: control characters are not allowed$",
               "a NUL byte");
    refused("a: 1\nb: \xff\n", EINVAL, "^doc:2:4: invalid leading UTF-8 octet$",
            "a byte that is not UTF-8");
    refused("k: \xc3\xa4\xc3(\n", EINVAL, "^doc:1:6: invalid trailing UTF-8 octet$",
            "a character cut short");
    refused("a: \xc0\xaf\n", EINVAL, "^doc:1:4: invalid length of a UTF-8 sequence$",
            "a character written too long");
    refused("a: \xed\xa0\x80\n", EINVAL, "^doc:1:4: invalid Unicode character$",
            "half a character");
    refused("a: 1\nb: 2\nc: \x01\n", EINVAL, "^doc:3:4: control characters", "a control character");
    /* Far behind what the scanner has looked at when the bytes are refused. */
    memset(far, '\n', sizeof(far));
    memcpy(far + 4000, "a: \x02", 4);
    is_refused(far, sizeof(far), EINVAL, "^doc:4001:4: control characters", "one far down");
}

static char *repeated(const char *before, const char *part, int count, const char *behind)
{
    struct text out = TEXT_INIT;

    text_add(&out, before);
    for (int i = 0; i < count; i++)
        text_add(&out, part);
    text_add(&out, behind);
    return out.data;
}

static void test_depth(void)
{
    char *text = repeated("", "[", 32, "");
    struct ydoc doc;

    text = realloc(text, 65);
    memset(text + 32, ']', 32);
    text[64] = '\0';
    doc = parse(text);
    is_int(doc.root->height, 32, "32 levels are allowed");
    ydoc_release(&doc);
    free(text);
    text = repeated("", "[", 33, "");
    refused(text, E2BIG, "^doc:1:33: nested too deeply; allowed: 32 levels$", "33 levels");
    free(text);
    text = repeated("", "[", 1000000, "");
    refused(text, E2BIG, "^doc:1:33: nested too deeply", "a million levels");
    free(text);
    refused("a: &a [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n"
            "b: [[[[[[[[[[[[*a]]]]]]]]]]]]\n",
            E2BIG, "^doc:2:16: nested too deeply", "levels through an alias");
    doc = parse("a: &a [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n"
                "b: [[[[[[[[[[[*a]]]]]]]]]]]\n");
    is_int(doc.root->height, 32, "… of which 32 are allowed, too");
    ydoc_release(&doc);
}

static void test_size(void)
{
    char *text;

    refused("a: &a [0,0,0,0,0,0,0,0,0,0]\n"
            "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
            "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
            "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
            "f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
            "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"
            "h: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g,*g]\n",
            E2BIG, "^doc:6:[0-9]+: the document has more than 500000 values$", "a billion laughs");
    text = repeated("[", "0,", 500001, "0]");
    refused(text, E2BIG, "^doc:1:1000000: the document has more than", "half a million items");
    free(text);
    text = repeated("[", "&a 0,", 1025, "]");
    refused(text, E2BIG, "^doc:1:[0-9]+: a document has at most 1024 anchors$",
            "a thousand anchors");
    free(text);
}

static void test_keys(void)
{
    struct text out = TEXT_INIT;

    for (int i = 0; i < 4097; i++)
        text_addf(&out, "k%d: 1\n", i);
    refused(text_str(&out), E2BIG, "^doc:4097:1: a mapping has at most 4096 keys$",
            "thousands of keys");
    text_release(&out);
}

/* Finding duplicates compares names with names: a document must not make that a day's work. */
static void test_comparisons(void)
{
    struct text out = TEXT_INIT;

    for (int map = 0; map < 6; map++) {
        text_addf(&out, "m%d:\n", map);
        for (int i = 0; i < 4000; i++)
            text_addf(&out, "  k%d: 1\n", i);
    }
    refused(text_str(&out), E2BIG, "^doc:2[0-9]{4}:3: there are too many keys in large mappings$",
            "large mappings");
    text_cut(&out, 0);
    for (int i = 0; i < 1000; i++)
        text_addf(&out, "- &a%d 1\n", i);
    for (int i = 0; i < 45000; i++)
        text_add(&out, "- *a0\n");
    refused(text_str(&out), E2BIG, "^doc:41001:3: there are too many aliases$", "many aliases");
    text_release(&out);
}

static void describes(const char *text, const char *want)
{
    struct arena arena = ARENA_INIT;
    struct ydoc doc = parse(text);

    is_str(ynode_describe(&arena, doc.root), want, "%s", want);
    ydoc_release(&doc);
    arena_release(&arena);
}

static void test_describe(void)
{
    describes("[1]", "a list");
    describes("{a: 1}", "a mapping");
    describes("~", "nothing");
    describes("''", "''");
    describes("word", "'word'");
    describes("\"two\\nlines\\ttab\"", "'two?lines?tab'");
    describes("0123456789012345678901234567890123456789012345678901234567890",
              "'012345678901234567890123456789012345678901234567890123456789…'");
    /* The 60th byte is the second of an umlaut. */
    describes("01234567890123456789012345678901234567890123456789012345678\xc3\xa4x",
              "'01234567890123456789012345678901234567890123456789012345678…'");
}

static void between(const char *text, int error, const char *regex, const char *name)
{
    struct why why = { 0 };
    struct ydoc doc;

    is_int(ydoc_parse_between(&doc, "doc", "{list:", text, "}", &why), -error, "%s: %s", name,
           error ? "refused" : "read");
    like(why_text(&why), regex, "%s: at its place in the text itself", name);
    if (!error) {
        stands_at(ynode_get(doc.root, "list"), 1, 1, "the list");
        stands_at(ynode_key(doc.root, "more"), 2, 2, "what follows it");
        ydoc_release(&doc);
    }
    why_release(&why);
}

static void test_between(void)
{
    between("[1, 2],\n more: 3 # that is all\n", 0, "^$", "a text inside a mapping");
    between("[1, *x]", EINVAL, "^doc:1:5: no anchor", "a mistake in the first line");
    between("[1,\n 2, !!x 3]", EINVAL, "^doc:2:5: tags", "a mistake in the second line");
    between("[1,\n \x01", EINVAL, "^doc:2:2: control characters", "a control character");
    between("[1, 2\n", EINVAL, "^doc:1:6: not valid YAML", "something missing at the end");
    between("[1, 2]}", EINVAL, "^doc:1:8: not valid YAML", "something too much at the end");
}

int main(void)
{
    test_tree();
    test_columns_are_characters();
    test_nulls();
    test_empty();
    test_aliases();
    test_refusals();
    test_bytes();
    test_depth();
    test_size();
    test_keys();
    test_comparisons();
    test_describe();
    test_between();
    return tap_done();
}
