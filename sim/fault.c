/*
 * Fault: the grammar of faults. See fault.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "sim/metric.h"
#include "sim/model.h"
#include "sim/suggest.h"
#include "sim/text.h"
#include "sim/unit.h"
#include "sim/why.h"

enum { WORDS_MAX = 8, FAULT_TEXT_MAX = 128 };

/* A command split at its blanks; `for TIME` and `after TIME` are already taken off. */
struct words {
    char text[FAULT_TEXT_MAX];
    char *word[WORDS_MAX + 1];
    int count;
    char whole[FAULT_TEXT_MAX]; /* on one line, for sentences */
};

typedef int fault_parser(const struct words *w, struct fault *f, struct why *why);

struct fault_row {
    const char *name, *usage;
    fault_parser *parse;
    bool lasts; /* may have a `for` */
};

static const struct fault_row rows[FAULT_KINDS];

static int usage(const struct words *w, const struct fault *f, struct why *why)
{
    return why_set(why, EINVAL, "'%s' is not understood; allowed: %s%s", w->whole,
                   rows[f->kind].usage, rows[f->kind].lasts ? " [for TIME]" : "");
}

static int parse_count(const struct words *w, int at, int64_t low, int64_t high, int64_t *n,
                       struct why *why)
{
    int r;

    if (at >= w->count)
        return 0;
    r = parse_i64(w->word[at], n);
    if (r == -EINVAL)
        return why_set(why, EINVAL, "'%s': '%s' is not a whole number", w->whole, w->word[at]);
    if (r < 0 || *n < low || *n > high)
        return why_set(why, ERANGE, "'%s': %s is out of range; allowed: %" PRId64 " to %" PRId64,
                       w->whole, w->word[at], low, high);
    return 0;
}

static int parse_alone(const struct words *w, struct fault *f, struct why *why)
{
    return w->count == 1 ? 0 : usage(w, f, why);
}

static int parse_xid(const struct words *w, struct fault *f, struct why *why)
{
    if (w->count != 2)
        return usage(w, f, why);
    return parse_count(w, 1, 1, XID_MAX, &f->number, why);
}

/* `ecc sbe 5`, `rows uncorrectable`, `pages dbe 2`: a class and a count. */
static int parse_class(const struct words *w, struct fault *f, struct why *why, const char *cor,
                       const char *unc)
{
    if (w->count < 2 || w->count > 3)
        return usage(w, f, why);
    if (!strcmp(w->word[1], cor))
        f->which = FAULT_CORRECTABLE;
    else if (!strcmp(w->word[1], unc))
        f->which = FAULT_UNCORRECTABLE;
    else
        return usage(w, f, why);
    f->number = 1;
    return parse_count(w, 2, 1, 1000000, &f->number, why);
}

static int parse_memory(const struct words *w, struct fault *f, struct why *why)
{
    return parse_class(w, f, why, "sbe", "dbe");
}

static int parse_rows(const struct words *w, struct fault *f, struct why *why)
{
    if (w->count == 2 && !strcmp(w->word[1], "failure")) {
        f->which = FAULT_FAILURE;
        return 0;
    }
    return parse_class(w, f, why, "correctable", "uncorrectable");
}

static int parse_thermal(const struct words *w, struct fault *f, struct why *why)
{
    int r = 0;

    f->factor = 2;
    if (w->count > 2)
        return usage(w, f, why);
    if (w->count == 2)
        r = parse_real(w->word[1], &f->factor);
    if (r == -EINVAL)
        return why_set(why, EINVAL, "'%s': '%s' is not a number", w->whole, w->word[1]);
    if (r < 0 || f->factor < 1 || f->factor > 100)
        return why_set(why, ERANGE, "'%s': %s is out of range; allowed: 1 to 100", w->whole,
                       w->word[1]);
    return 0;
}

static int parse_nvlink(const struct words *w, struct fault *f, struct why *why)
{
    const char *state = w->word[w->count - 1];

    if (w->count < 2 || w->count > 3)
        return usage(w, f, why);
    if (strcmp(state, "down") && strcmp(state, "up"))
        return usage(w, f, why);
    f->which = strcmp(state, "up") ? FAULT_DOWN : FAULT_UP;
    f->number = FAULT_ALL_LINKS;
    return w->count == 3 ? parse_count(w, 1, 0, NVLINK_LINKS_MAX - 1, &f->number, why) : 0;
}

static int parse_sensor(const struct words *w, struct fault *f, struct why *why)
{
    struct text hint = TEXT_INIT;
    int id, r;

    if (w->count != 2)
        return usage(w, f, why);
    id = metric_find(w->word[1]);
    f->number = id;
    if (id >= 0)
        return 0;
    suggest_add(&hint, w->word[1], metric_name_at, NULL);
    r = why_set(why, EINVAL, "'%s': '%s' is not a metric%s", w->whole, w->word[1], text_str(&hint));
    text_release(&hint);
    return r;
}

static const struct fault_row rows[FAULT_KINDS] = {
    [FAULT_XID] = { "xid", "xid NUMBER", parse_xid, true },
    [FAULT_ECC] = { "ecc", "ecc sbe|dbe [COUNT]", parse_memory, false },
    [FAULT_ROWS] = { "rows", "rows correctable|uncorrectable [COUNT], rows failure", parse_rows,
                     false },
    [FAULT_PAGES] = { "pages", "pages sbe|dbe [COUNT]", parse_memory, false },
    [FAULT_THERMAL] = { "thermal", "thermal [FACTOR]", parse_thermal, true },
    [FAULT_POWER_BRAKE] = { "power_brake", "power_brake", parse_alone, true },
    [FAULT_HANG] = { "hang", "hang", parse_alone, true },
    [FAULT_NVLINK] = { "nvlink", "nvlink [LINK] down|up", parse_nvlink, true },
    [FAULT_SENSOR] = { "sensor", "sensor METRIC", parse_sensor, true },
    [FAULT_FALLEN_OFF_BUS] = { "fallen_off_bus", "fallen_off_bus", parse_alone, true },
    [FAULT_RECOVER] = { "recover", "recover", parse_alone, false },
};

static const char *fault_name_at(const void *unused, int i)
{
    (void)unused;
    return i < FAULT_KINDS ? rows[i].name : NULL;
}

static void add_word(struct words *w, char *word)
{
    if (w->count)
        strcat(w->whole, " ");
    strcat(w->whole, word); /* no longer than the text, of which they are parts */
    w->word[w->count++] = word;
}

static int split(struct words *w, const char *text, struct why *why)
{
    char *rest, *word;

    *w = (struct words){ 0 };
    if (parse_trim(text, w->text, sizeof(w->text)) < 0)
        return why_set(why, E2BIG, "a fault is at most %zu characters long", sizeof(w->text) - 1);
    rest = w->text;
    while ((word = strsep(&rest, " \t\r\n\v\f"))) {
        if (!*word)
            continue;
        if (w->count == WORDS_MAX)
            return why_set(why, EINVAL, "'%s …' has too many words", w->whole);
        add_word(w, word);
    }
    if (!w->count)
        return why_set(why, EINVAL, "a fault is needed, for example 'xid 79' or 'recover'");
    return 0;
}

static int take_time(struct words *w, int64_t *ns, struct why *why)
{
    int r = unit_parse(UNIT_NANOSECOND, w->word[w->count - 1], UNIT_BARE_REFUSED, ns, why);

    if (r == 0 && (*ns < NS_PER_MS || *ns > TIME_MAX_NS))
        r = why_set(why, ERANGE, "'%s': %s is out of range; allowed: 1ms to %" PRId64 "h", w->whole,
                    w->word[w->count - 1], TIME_MAX_NS / (3600 * NS_PER_S));
    w->count -= 2;
    return r;
}

/* What stands at the end, in any order, each once. */
static int take_times(struct words *w, struct fault *f, struct why *why)
{
    int r = 0;

    while (r == 0 && w->count >= 3) {
        const char *word = w->word[w->count - 2];
        int64_t *ns = !strcmp(word, "for")     ? &f->for_ns
                      : !strcmp(word, "after") ? &f->after_ns
                                               : NULL;

        if (!ns)
            break;
        if (*ns)
            return why_set(why, EINVAL, "'%s' has '%s' twice", w->whole, word);
        r = take_time(w, ns, why);
    }
    return r;
}

int fault_parse(const char *text, struct fault *fault, struct why *why)
{
    struct words w;
    struct text hint = TEXT_INIT;
    int r = split(&w, text, why);

    *fault = (struct fault){ 0 };
    if (r == 0)
        r = take_times(&w, fault, why);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < FAULT_KINDS; i++)
        if (!strcmp(w.word[0], rows[i].name)) {
            fault->kind = i;
            r = rows[i].parse(&w, fault, why);
            if (r == 0 && fault->for_ns && !fault_lasts(fault))
                r = why_set(why, EINVAL, "'%s': this fault happens at once and has no duration",
                            w.whole);
            return r;
        }
    suggest_add(&hint, w.word[0], fault_name_at, NULL);
    r = why_set(why, EINVAL, "'%s' is not a fault%s", w.word[0], text_str(&hint));
    text_release(&hint);
    return r;
}

void fault_print(struct text *out, const struct fault *f)
{
    text_add(out, rows[f->kind].name);
    switch ((enum fault_kind)f->kind) {
    case FAULT_XID:
        text_addf(out, " %" PRId64, f->number);
        break;
    case FAULT_ECC:
    case FAULT_PAGES:
        text_addf(out, " %s %" PRId64, f->which == FAULT_CORRECTABLE ? "sbe" : "dbe", f->number);
        break;
    case FAULT_ROWS:
        if (f->which == FAULT_FAILURE)
            text_add(out, " failure");
        else
            text_addf(out, " %s %" PRId64,
                      f->which == FAULT_CORRECTABLE ? "correctable" : "uncorrectable", f->number);
        break;
    case FAULT_THERMAL:
        text_add(out, " ");
        print_real(out, f->factor);
        break;
    case FAULT_NVLINK:
        if (f->number != FAULT_ALL_LINKS)
            text_addf(out, " %" PRId64, f->number);
        text_add(out, f->which == FAULT_UP ? " up" : " down");
        break;
    case FAULT_SENSOR:
        text_addf(out, " %s", metric_infos[f->number].name);
        break;
    default:
        break;
    }
    if (f->after_ns) {
        text_add(out, " after ");
        unit_print(out, UNIT_NANOSECOND, f->after_ns);
    }
    if (f->for_ns) {
        text_add(out, " for ");
        unit_print(out, UNIT_NANOSECOND, f->for_ns);
    }
}

void fault_schema(struct text *out)
{
    text_add(out, "\"type\": \"string\", \"pattern\": \"^(");
    for (int i = 0; i < FAULT_KINDS; i++)
        text_addf(out, "%s%s", i ? "|" : "", rows[i].name);
    text_add(out, ")( .*)?$\"");
}

static const struct {
    int xid;
    const char *message;
} messages[] = {
    { 8, "GPU stopped processing" },
    { 13, "Graphics Engine Exception" },
    { 31, "MMU Fault" },
    { 32, "Invalid or corrupted push buffer stream" },
    { 38, "Driver firmware error" },
    { 43, "GPU stopped processing" },
    { 45, "Preemptive cleanup, due to previous errors" },
    { 48, "Double Bit ECC Error" },
    { 61, "Internal micro-controller breakpoint" },
    { 62, "Internal micro-controller halt" },
    { 63, "Row remapper: new row marked for remapping, reset gpu to activate." },
    { 64, "Row remapper: failed to mark a row for remapping" },
    { 68, "NVDEC0 Exception" },
    { 69, "Graphics Engine class error" },
    { 74, "NVLink: fatal error detected on link" },
    { 79, "GPU has fallen off the bus." },
    { 92, "High single-bit ECC error rate" },
    { 94, "Contained memory error" },
    { 95, "Uncontained memory error" },
    { 109, "Context switch timeout" },
    { 119, "Timeout waiting for RPC from GSP" },
    { 120, "GSP error" },
    { 140, "Unrecovered ECC error" },
    { 154, "GPU recovery action changed" },
};

const char *xid_message(int64_t xid)
{
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        if (messages[i].xid == xid)
            return messages[i].message;
    return "Unknown error";
}

bool fault_lasts(const struct fault *f)
{
    return rows[f->kind].lasts && !(f->kind == FAULT_NVLINK && f->which == FAULT_UP);
}
