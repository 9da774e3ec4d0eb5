/*
 * The harness, tested by itself: each scenario is a test program of its own, run as a child
 * with its output caught, so that what must fail can fail without failing here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include "tests/tap.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- Scenarios ------------------------------------------------------------ */

static int passing(void)
{
    plan(8);
    ok(1, "ok");
    is_int(INT64_C(80) << 30, INT64_C(85899345920), "is_int");
    is_real(0.1 + 0.2, 0.3, 1e-12, "is_real");
    is_real(NAN, NAN, 0, "is_real NaN");
    is_str("a", "a", "is_str");
    is_mem("ab\0c", "ab\0c", 4, "is_mem");
    like("Tesla T4", "^Tesla (T4|K80)$", "like");
    contains("Tesla T4", "T4", "contains");
    return tap_done();
}

static int counting(void)
{
    ok(true, "first");
    ok(true, "second");
    return tap_done();
}

static int failing(void)
{
    plan(9);
    ok(0, "ok of %d", 0);
    is_int(INT64_C(4294967297), 1, "is_int");
    is_real(1.5, 1, 0.25, "is_real");
    is_real(NAN, 1, 0.25, "is_real NaN");
    is_str("a\nb", "a", "is_str");
    is_mem("abc", "axc", 3, "is_mem");
    like("Tesla T4", "^T4", "like");
    like("Tesla T4", "(", "like, half a regex");
    contains("Tesla T4", "K80", "contains");
    return tap_done();
}

static int nulls(void)
{
    plan(6);
    is_str(NULL, NULL, "NULL is NULL");
    is_str(NULL, "", "NULL is not empty");
    is_mem(NULL, NULL, 0, "no bytes are no bytes");
    is_mem(NULL, "", 1, "no bytes are not one");
    like(NULL, ".*", "NULL matches nothing");
    contains(NULL, "", "NULL contains nothing");
    return tap_done();
}

static int naming(void)
{
    plan(2);
    ok(1, "issue #7 # TODO");
    ok(1, "two\nlines, 100%%");
    return tap_done();
}

static int skipping(void)
{
    plan(3);
    ok(1, "before");
    skip(2, "no %s", "fuse");
    return tap_done();
}

static int skipping_all(void)
{
    skip_all("no %s", "fuse");
}

static int too_few(void)
{
    plan(2);
    ok(1, "lonely");
    return tap_done();
}

static int too_many(void)
{
    plan(1);
    ok(1, "planned");
    ok(1, "not planned");
    return tap_done();
}

static int nothing(void)
{
    return tap_done();
}

static int bailing(void)
{
    ok(1, "before");
    bail("no %s", "fuse");
}

static int late_plan(void)
{
    ok(1, "before");
    plan(1);
    return tap_done();
}

static int talking(void)
{
    ok(1, "quiet");
    diag("one\ntwo %d", 2);
    return tap_done();
}

static int once(void)
{
    int count = 0;

    is_int(count++, 0, "an argument");
    ok(count == 1, "is evaluated once");
    return tap_done();
}

static const struct scenario {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    { "passing", passing },
    { "counting", counting },
    { "failing", failing },
    { "nulls", nulls },
    { "naming", naming },
    { "skipping", skipping },
    { "skipping_all", skipping_all },
    { "too_few", too_few },
    { "too_many", too_many },
    { "nothing", nothing },
    { "bailing", bailing },
    { "late_plan", late_plan },
    { "talking", talking },
    { "once", once },
};

/* --- Running one ---------------------------------------------------------- */

struct result {
    int status;
    char out[8192]; /* what the scenarios print is short, and too much of it fails below */
    char err[8192];
};

static void slurp(FILE *from, char *text, size_t size)
{
    size_t length;

    rewind(from);
    length = fread(text, 1, size, from);
    if (length == size)
        bail("a scenario printed more than %zu bytes", size - 1);
    text[length] = '\0';
    fclose(from);
}

static struct result run(const char *scenario, const char *no_skip)
{
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    struct result result;
    int status;
    pid_t pid;

    if (!out || !err)
        bail("no temporary file: %s", strerror(errno));
    pid = fork();
    if (pid < 0)
        bail("no child: %s", strerror(errno));
    if (pid == 0) {
        if (no_skip)
            setenv("TAP_NO_SKIP", no_skip, 1);
        else
            unsetenv("TAP_NO_SKIP");
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        execl("/proc/self/exe", "test_tap", scenario, (char *)NULL);
        _exit(126);
    }
    if (waitpid(pid, &status, 0) != pid)
        bail("lost the child: %s", strerror(errno));
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    slurp(out, result.out, sizeof result.out);
    slurp(err, result.err, sizeof result.err);
    return result;
}

/* --- What each must say --------------------------------------------------- */

static void test_passing(void)
{
    struct result r = run("passing", NULL);

    is_int(r.status, 0, "all passed: status 0");
    is_str(r.out,
           "1..8\nok 1 - ok\nok 2 - is_int\nok 3 - is_real\nok 4 - is_real NaN\n"
           "ok 5 - is_str\nok 6 - is_mem\nok 7 - like\nok 8 - contains\n",
           "a plan and one line for each test");
    is_str(r.err, "", "nothing for people to read");

    r = run("counting", NULL);
    is_int(r.status, 0, "no plan: status 0");
    is_str(r.out, "ok 1 - first\nok 2 - second\n1..2\n", "the plan comes last");

    r = run("once", NULL);
    is_int(r.status, 0, "arguments are evaluated once");
}

static void test_failing(void)
{
    struct result r = run("failing", NULL);

    is_int(r.status, 1, "failures: status 1");
    like(r.out,
         "^1\\.\\.9\nnot ok 1 - ok of 0\nnot ok 2 - is_int\nnot ok 3 - is_real\n"
         "not ok 4 - is_real NaN\nnot ok 5 - is_str\nnot ok 6 - is_mem\nnot ok 7 - like\n"
         "not ok 8 - like, half a regex\nnot ok 9 - contains\n$",
         "each failed, and the program went on");
    like(r.err, "^#   Failed test 'ok of 0'\n#   at tests/test_tap\\.c:[0-9]+\n",
         "a failure names itself, its file and line");
    contains(r.err, "#          got: 4294967297\n#     expected: 1\n", "is_int shows 64 bits");
    contains(r.err, "#          got: 1.5\n#     expected: 1, give or take 0.25\n",
             "is_real shows the tolerance");
    like(r.err, "got: -?nan\n#     expected: 1,", "NaN is not a number");
    contains(r.err, "#          got: 'a\n# b'\n#     expected: 'a'\n",
             "is_str keeps every line a comment");
    contains(r.err, "#          got: 0x62 at byte 1 of 3\n#     expected: 0x78\n",
             "is_mem names the first byte that differs");
    contains(r.err, "#          got: 'Tesla T4'\n#     to match: '^T4'\n", "like shows the regex");
    contains(r.err, "# which is no regular expression: ", "half a regex is a failure");
    contains(r.err, "#          got: 'Tesla T4'\n#   to contain: 'K80'\n", "contains shows both");
    like(r.err, "\n# 9 of 9 tests failed\n$", "the end counts them");

    r = run("nulls", NULL);
    is_int(r.status, 1, "NULL is handled");
    is_str(r.out,
           "1..6\nok 1 - NULL is NULL\nnot ok 2 - NULL is not empty\n"
           "ok 3 - no bytes are no bytes\nnot ok 4 - no bytes are not one\n"
           "not ok 5 - NULL matches nothing\nnot ok 6 - NULL contains nothing\n",
           "NULL equals only NULL");
    contains(r.err, "#          got: NULL\n#     expected: ''\n", "NULL is shown unquoted");
}

static void test_names(void)
{
    struct result r = run("naming", NULL);

    is_int(r.status, 0, "odd names: status 0");
    is_str(r.out, "1..2\nok 1 - issue \\#7 \\# TODO\nok 2 - two lines, 100%\n",
           "# is escaped and a name stays on its line");

    r = run("talking", NULL);
    is_str(r.err, "# one\n# two 2\n", "diag makes each line a comment");
}

static void test_skips(void)
{
    struct result r = run("skipping", NULL);

    is_int(r.status, 0, "skips pass");
    is_str(r.out, "1..3\nok 1 - before\nok 2 # SKIP no fuse\nok 3 # SKIP no fuse\n",
           "each skipped test is counted, with the reason");
    r = run("skipping", "0");
    is_int(r.status, 0, "TAP_NO_SKIP=0 changes nothing");
    r = run("skipping", "1");
    is_int(r.status, 1, "TAP_NO_SKIP=1 makes them failures");
    is_str(r.out, "1..3\nok 1 - before\nnot ok 2 - skipped: no fuse\nnot ok 3 - skipped: no fuse\n",
           "which say that they were skipped");
    like(r.err, "TAP_NO_SKIP forbids .*test_tap\\.c:[0-9]+\n", "and where");

    r = run("skipping_all", NULL);
    is_int(r.status, 0, "a whole program can be skipped");
    is_str(r.out, "1..0 # SKIP no fuse\n", "with the reason");
    r = run("skipping_all", "1");
    is_int(r.status, 1, "TAP_NO_SKIP=1 makes that a failure");
    is_str(r.out, "1..1\nnot ok 1 - no fuse\n", "with the reason");
}

static void test_plans(void)
{
    struct result r = run("too_few", NULL);

    is_int(r.status, 1, "too few tests: status 1");
    is_str(r.err, "# planned 2 tests but ran 1\n", "both counts are told");
    r = run("too_many", NULL);
    is_int(r.status, 1, "too many tests: status 1");
    is_str(r.err, "# planned 1 tests but ran 2\n", "both counts are told");
    r = run("nothing", NULL);
    is_int(r.status, 1, "no test at all: status 1");
    is_str(r.out, "", "which must not look like a skipped program");
    r = run("bailing", NULL);
    is_int(r.status, 255, "bail: status 255");
    is_str(r.out, "ok 1 - before\nBail out!  no fuse\n", "bail stops everything");
    r = run("late_plan", NULL);
    is_int(r.status, 255, "a late plan is refused");
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
            if (strcmp(argv[1], scenarios[i].name) == 0)
                return scenarios[i].run();
        }
        bail("there is no scenario '%s'", argv[1]);
    }
    test_passing();
    test_failing();
    test_names();
    test_skips();
    test_plans();
    return tap_done();
}
