/*
 * The TAP producer behind tap.h.
 *
 * Test lines go to stdout and are flushed one by one, so that a crash loses none and a forked
 * child inherits no half-filled buffer; everything for people goes to stderr. Knows nothing of
 * what it tests.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

#include "tests/tap.h"

#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int planned; /* 0: no plan was announced */
static int ran;
static int failed;

/* The caller frees the text. */
static char *format_text(const char *format, va_list args)
{
    char *text;

    if (vasprintf(&text, format, args) < 0)
        tap_bail("out of memory");
    return text;
}

#define FORMAT_TEXT(text, format)             \
    do {                                      \
        va_list args;                         \
        va_start(args, format);               \
        (text) = format_text((format), args); \
        va_end(args);                         \
    } while (0)

/* On one line, and with no bare # which would begin a TAP directive. */
static void print_name(const char *name)
{
    for (; *name; name++) {
        if (*name == '#')
            fputs("\\#", stdout);
        else
            putchar(*name == '\n' || *name == '\r' ? ' ' : *name);
    }
}

static void print_comment(const char *text)
{
    fputs("# ", stderr);
    for (; *text; text++) {
        putc(*text, stderr);
        if (*text == '\n' && text[1])
            fputs("# ", stderr);
    }
    putc('\n', stderr);
}

/* Takes the name. */
static bool report(const char *file, int line, bool passed, char *name)
{
    ran++;
    printf("%s %d - ", passed ? "ok" : "not ok", ran);
    print_name(name);
    putchar('\n');
    fflush(stdout);
    if (!passed) {
        failed++;
        tap_diag("  Failed test '%s'\n  at %s:%d", name, file, line);
    }
    free(name);
    return passed;
}

/* Texts are shown in quotes so that NULL and blanks at the ends can be seen. The caller frees. */
static char *quoted(const char *text)
{
    char *shown;

    if (asprintf(&shown, text ? "'%s'" : "%s", text ? text : "NULL") < 0)
        tap_bail("out of memory");
    return shown;
}

static void differ_text(const char *got, const char *relation, const char *want)
{
    char *shown_got = quoted(got);
    char *shown_want = quoted(want);

    tap_diag("         got: %s\n%12s: %s", shown_got, relation, shown_want);
    free(shown_got);
    free(shown_want);
}

static bool skips_are_failures(void)
{
    const char *value = getenv("TAP_NO_SKIP");

    return value && *value && strcmp(value, "0") != 0;
}

void tap_plan(int count)
{
    if (planned || ran)
        tap_bail("the plan must come once, and before the first test");
    if (count <= 0)
        tap_bail("a plan of %d tests makes no sense", count);
    planned = count;
    printf("1..%d\n", count);
    fflush(stdout);
}

void tap_skip_all(const char *file, int line, const char *why, ...)
{
    char *text;

    if (planned || ran)
        tap_bail("skip_all must come before the plan and the first test");
    FORMAT_TEXT(text, why);
    if (skips_are_failures()) {
        tap_plan(1);
        report(file, line, false, text);
        tap_diag("  skipped as a whole, which TAP_NO_SKIP forbids");
        exit(1);
    }
    printf("1..0 # SKIP ");
    print_name(text);
    putchar('\n');
    exit(0);
}

bool tap_ok(const char *file, int line, bool passed, const char *name, ...)
{
    char *text;

    FORMAT_TEXT(text, name);
    return report(file, line, passed, text);
}

bool tap_is_int(const char *file, int line, int64_t got, int64_t want, const char *name, ...)
{
    char *text;

    FORMAT_TEXT(text, name);
    if (report(file, line, got == want, text))
        return true;
    tap_diag("         got: %" PRId64 "\n    expected: %" PRId64, got, want);
    return false;
}

bool tap_is_real(const char *file, int line, double got, double want, double tolerance,
                 const char *name, ...)
{
    bool same = got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tolerance;
    char *text;

    FORMAT_TEXT(text, name);
    if (report(file, line, same, text))
        return true;
    tap_diag("         got: %.17g\n    expected: %.17g, give or take %g", got, want, tolerance);
    return false;
}

bool tap_is_str(const char *file, int line, const char *got, const char *want, const char *name,
                ...)
{
    bool same = got && want ? strcmp(got, want) == 0 : got == want;
    char *text;

    FORMAT_TEXT(text, name);
    if (report(file, line, same, text))
        return true;
    differ_text(got, "expected", want);
    return false;
}

bool tap_is_mem(const char *file, int line, const void *got, const void *want, size_t size,
                const char *name, ...)
{
    const unsigned char *a = got;
    const unsigned char *b = want;
    bool comparable = a && b;
    size_t at = 0;
    char *text;

    while (comparable && at < size && a[at] == b[at])
        at++;
    FORMAT_TEXT(text, name);
    if (report(file, line, comparable ? at == size : a == b, text))
        return true;
    if (comparable)
        tap_diag("         got: 0x%02x at byte %zu of %zu\n    expected: 0x%02x", a[at], at, size,
                 b[at]);
    else
        tap_diag("         got: %s\n    expected: %s", a ? "bytes" : "NULL", b ? "bytes" : "NULL");
    return false;
}

bool tap_like(const char *file, int line, const char *text, const char *regex, const char *name,
              ...)
{
    char wrong[128] = "";
    bool found = false;
    char *called;
    regex_t re;
    int err;

    err = regcomp(&re, regex, REG_EXTENDED | REG_NOSUB);
    if (err) {
        regerror(err, &re, wrong, sizeof wrong);
    } else {
        found = text && regexec(&re, text, 0, NULL, 0) == 0;
        regfree(&re);
    }
    FORMAT_TEXT(called, name);
    if (report(file, line, found, called))
        return true;
    differ_text(text, "to match", regex);
    if (err)
        tap_diag("which is no regular expression: %s", wrong);
    return false;
}

bool tap_contains(const char *file, int line, const char *text, const char *part, const char *name,
                  ...)
{
    char *called;

    FORMAT_TEXT(called, name);
    if (report(file, line, text && part && strstr(text, part), called))
        return true;
    differ_text(text, "to contain", part);
    return false;
}

void tap_skip(const char *file, int line, int count, const char *why, ...)
{
    bool fatal = skips_are_failures();
    char *text;

    FORMAT_TEXT(text, why);
    if (fatal)
        tap_diag("TAP_NO_SKIP forbids what is skipped at %s:%d", file, line);
    for (; count > 0; count--) {
        ran++;
        failed += fatal;
        printf(fatal ? "not ok %d - skipped: " : "ok %d # SKIP ", ran);
        print_name(text);
        putchar('\n');
    }
    fflush(stdout);
    free(text);
}

void tap_diag(const char *format, ...)
{
    char *text;

    FORMAT_TEXT(text, format);
    print_comment(text);
    free(text);
}

void tap_bail(const char *format, ...)
{
    va_list args;

    /* Not through format_text, which bails itself when memory is short. */
    printf("Bail out!  ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
    exit(255);
}

int tap_done(void)
{
    if (!planned && ran)
        printf("1..%d\n", ran);
    fflush(stdout);
    if (!ran)
        tap_diag("no test ran");
    else if (planned && ran != planned)
        tap_diag("planned %d tests but ran %d", planned, ran);
    if (failed)
        tap_diag("%d of %d tests failed", failed, ran);
    return !ran || failed || (planned && ran != planned);
}
