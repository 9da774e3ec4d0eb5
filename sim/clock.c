/*
 * Clock: the grammar of the node's clock, and how real time becomes steps. See clock.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/clock.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/unit.h"
#include "sim/why.h"
#include "sim/world.h"

#define SPEED_MAX 1e6
#define STEP_MAX (24 * 3600 * NS_PER_S)

static int parse_speed(const char *text, struct clock_command *c, struct why *why)
{
    int r = parse_real(text, &c->speed);

    c->kind = CLOCK_SPEED;
    if (r == -EINVAL)
        return why_set(why, EINVAL, "'%s' is not a speed; allowed: a number, 1 is real time", text);
    if (r < 0 || c->speed < 0 || c->speed > SPEED_MAX)
        return why_set(why, ERANGE, "speed %s is out of range; allowed: 0 to %.0f", text,
                       SPEED_MAX);
    return 0;
}

static int parse_step(const char *text, struct clock_command *c, struct why *why)
{
    int r;

    c->kind = CLOCK_STEP;
    r = unit_parse(UNIT_NANOSECOND, text, UNIT_BARE_REFUSED, &c->step_ns, why);
    if (r < 0)
        return r;
    if (c->step_ns <= 0 || c->step_ns > STEP_MAX)
        return why_set(why, ERANGE, "step %s is out of range; allowed: above 0, up to 24h", text);
    return 0;
}

int clock_parse(const char *text, struct clock_command *c, struct why *why)
{
    char buf[64], word[16], argument[32], more;
    int n;

    *c = (struct clock_command){ 0 };
    if (parse_trim(text, buf, sizeof(buf)) < 0)
        return why_set(why, E2BIG, "a clock command is at most %zu characters long",
                       sizeof(buf) - 1);
    for (char *p = buf; *p; p++)
        if (isspace((unsigned char)*p))
            *p = ' '; /* a sentence about it stays on its line */
    n = sscanf(buf, "%15s %31s %c", word, argument, &more);
    if (n == 2 && !strcmp(word, "speed"))
        return parse_speed(argument, c, why);
    if (n == 2 && !strcmp(word, "step"))
        return parse_step(argument, c, why);
    c->kind = CLOCK_PAUSE;
    if (n == 1 && !strcmp(word, "pause"))
        return 0;
    c->kind = CLOCK_RESUME;
    if (n == 1 && !strcmp(word, "resume"))
        return 0;
    return why_set(why, EINVAL,
                   "'%s' is not a clock command; allowed: speed NUMBER, pause, resume, step TIME",
                   buf);
}

int64_t clock_due(struct node *node, int64_t real_ns, int64_t step_ns, int64_t most)
{
    int64_t steps;

    if (node->paused)
        return 0;
    node->due_ns += (double)real_ns * node->speed;
    if (node->due_ns >= (double)most * (double)step_ns) {
        node->due_ns = 0;
        return most;
    }
    steps = (int64_t)(node->due_ns / (double)step_ns);
    node->due_ns -= (double)steps * (double)step_ns;
    return steps;
}
