/*
 * Fuzzes what reads a single value: `make fuzz`, or `fuzz_value FILE` for one input.
 *
 * The first letter of an input says what the rest is:
 *
 *     u   a quantity, of every unit       n   a number
 *     f   a fault                         c   a command for the clock
 *     e   environment variables, one in a line
 *
 * Whatever the bytes are, they are read or refused with a sentence, and what is read prints as text that reads to the
 * same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/clock.h"
#include "sim/sim.h"
#include "tests/fuzz.h"

static void fuzz_unit_as(enum unit unit, const char *text, enum unit_bare bare)
{
    struct why why = { 0 };
    struct text printed = TEXT_INIT, shown = TEXT_INIT;
    int64_t stored, again;
    int r = unit_parse(unit, text, bare, &stored, &why);

    check_refusal(r, &why);
    if (r < 0)
        return;
    unit_show(&shown, unit, stored);
    unit_print(&printed, unit, stored);
    r = unit_parse(unit, text_str(&printed), UNIT_BARE_SHOWN, &again, &why);
    MUST(r == 0 && again == stored, "%" PRId64 " %s print as %s: %s", stored, unit_name(unit),
         text_str(&printed), why_text(&why));
    text_release(&printed);
    text_release(&shown);
}

static void fuzz_unit(const char *text)
{
    for (int unit = 0; unit < UNIT_COUNT_OF_UNITS; unit++) {
        fuzz_unit_as((enum unit)unit, text, UNIT_BARE_REFUSED);
        fuzz_unit_as((enum unit)unit, text, UNIT_BARE_SHOWN);
    }
}

static void fuzz_number(const char *text)
{
    char trimmed[64];
    double real;
    int64_t whole;

    if (parse_real(text, &real) == 0)
        MUST(isfinite(real), "'%s' is read as %f", text, real);
    parse_i64(text, &whole);
    if (parse_trim(text, trimmed, sizeof(trimmed)) == 0)
        MUST(strlen(trimmed) <= strlen(text), "'%s' grew", text);
}

static void fuzz_fault(const char *text)
{
    struct why why = { 0 };
    struct text printed = TEXT_INIT;
    struct fault fault, again;
    int r = fault_parse(text, &fault, &why);

    check_refusal(r, &why);
    if (r < 0)
        return;
    MUST(!fault.for_ns || fault_lasts(&fault), "'%s' lasts", text);
    fault_print(&printed, &fault);
    r = fault_parse(text_str(&printed), &again, &why);
    MUST(r == 0 && again.kind == fault.kind && again.which == fault.which &&
             again.number == fault.number && again.factor == fault.factor &&
             again.for_ns == fault.for_ns,
         "'%s' prints as '%s', which reads to something else: %s", text, text_str(&printed),
         why_text(&why));
    text_release(&printed);
}

static void fuzz_clock(const char *text)
{
    struct why why = { 0 };
    struct clock_command c;
    int r = clock_parse(text, &c, &why);

    check_refusal(r, &why);
    if (r == 0 && c.kind == CLOCK_SPEED)
        MUST(c.speed >= 0 && isfinite(c.speed), "'%s' is a speed of %f", text, c.speed);
    if (r == 0 && c.kind == CLOCK_STEP)
        MUST(c.step_ns > 0, "'%s' is a step of %" PRId64 " ns", text, c.step_ns);
}

static void fuzz_environment(char *text)
{
    char *lines[8] = { 0 };
    struct why why = { 0 };
    struct config cfg;
    int r;

    for (int i = 0; i < 7 && text; i++)
        lines[i] = strsep(&text, "\n");
    r = config_parse(&cfg, "", 0, &(struct config_options){ .environment = lines }, &why);
    check_refusal(r, &why);
    if (r == 0)
        config_release(&cfg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A text of its own size: reading behind its end is seen. */
    char *text = strndup((const char *)data, size);

    if (!text)
        return 0;
    switch (*text) {
    case 'u':
        fuzz_unit(text + 1);
        break;
    case 'n':
        fuzz_number(text + 1);
        break;
    case 'f':
        fuzz_fault(text + 1);
        break;
    case 'c':
        fuzz_clock(text + 1);
        break;
    case 'e':
        fuzz_environment(text + 1);
        break;
    }
    free(text);
    return 0;
}
