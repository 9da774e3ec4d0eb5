/*
 * Fuzzes the commands: `make fuzz`, or `fuzz_command FILE` for one input.
 *
 * Behind a `w` an input is a workload, which is run. Anything else begins a script, one command in a line, for a node
 * of unlike GPUs (see `commands`). Whatever the bytes are, they are read or refused with a sentence; a refused command
 * changes nothing; and after every command the world keeps tests/invariants.h. Single values: fuzz_value.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>

#include "sim/clock.h"
#include "sim/sim.h"
#include "sim/workload_plan.h"
#include "tests/fuzz.h"
#include "tests/grammar.h"
#include "tests/invariants.h"

/* What an input may cost. */
enum { LINES_MAX = 100, STEPS_MAX = 300, STEPS_AT_ONCE = 50 };

/* --- nodes ----------------------------------------------------------------------------------- */

/* The first is where scripts begin; `config N` applies another. */
static const char *const nodes[] = {
    "gpus: [{model: A100-SXM4-80GB}, {model: Tesla-K80}, {model: RTX-4090}, {model: V100-SXM2-16GB},"
    " {model: H100-80GB-HBM3}, {model: H100-80GB-HBM3}]",
    "{gpus: [{model: A100-SXM4-80GB, workload: {activity: '50:10:2s,0:0:1s', memory: 1GiB}},"
    " {model: Tesla-K80, memory: 1GiB}, {model: RTX-4090, power_limit: 300W}], profile: cycle,"
    " step: 1s}",
    "{gpus: {count: 2, model: H100-80GB-HBM3, metrics: {temperature_gpu_c: 95, memory_used_bytes:"
    " {ramp: {from: 0, to: 100%, over: 5s}}}}, nvlink: {topology: pairs}, faults:"
    " [{at: 1s, gpu: all, fault: ecc dbe, every: 700ms}, {at: 2s, gpu: 1, fault: hang, for: 1s}]}",
    "{gpus: [{model: A100-SXM4-80GB, mig_mode: true}, {model: A100-SXM4-80GB, ecc_mode: false}],"
    " workloads: [{name: w, devices: all, activity: [{time: 3s, utilization: 60, nvlink_tx: 1GB/s}],"
    " repeat: 3, memory: {random-increase: {step: 4GiB}}}, {name: x, start: 2s, activity: '80'}]}",
    "gpus: []",
};

enum { NODES = sizeof(nodes) / sizeof(nodes[0]) };

static struct config configs[NODES];

static void load_nodes(void)
{
    struct why why = { 0 };

    if (configs[0].models.count)
        return;
    for (int i = 0; i < NODES; i++)
        MUST(config_parse(&configs[i], nodes[i], strlen(nodes[i]), NULL, &why) == 0, "%s",
             why_text(&why));
}

/* --- scripts --------------------------------------------------------------------------------- */

/* A script on its way. */
struct script {
    struct sim *sim;
    struct invariants iv;
    struct why why;
    char *rest; /* of the line */
    int steps;  /* made so far */
};

static const char *next_word(struct script *s)
{
    char *word = s->rest ? strsep(&s->rest, " ") : NULL;

    return word ? word : "";
}

static int64_t next_number(struct script *s)
{
    int64_t n = 0;

    parse_i64(next_word(s), &n);
    return n;
}

static int next_gpu(struct script *s)
{
    return sim_find_gpu(s->sim, next_word(s));
}

static const char *rest(const struct script *s)
{
    return s->rest ? s->rest : "";
}

static void look(struct script *s)
{
    MUST(invariants_hold(&s->iv, s->sim), "%s", text_str(&s->iv.broken));
}

static void make_steps(struct script *s, int64_t n)
{
    for (int64_t i = 0; i < n && i < STEPS_AT_ONCE && s->steps < STEPS_MAX; i++, s->steps++) {
        sim_step(s->sim);
        look(s);
    }
}

static int do_step(struct script *s)
{
    make_steps(s, next_number(s));
    return 0;
}

static int do_clock(struct script *s)
{
    struct clock_command c;
    int64_t steps = 0;
    int r;

    if (clock_parse(rest(s), &c, NULL) == 0 && c.kind == CLOCK_STEP)
        steps = c.step_ns / sim_world(s->sim)->node_plan.step_ns;
    if (steps > STEPS_AT_ONCE || s->steps > STEPS_MAX)
        return 0;
    s->steps += (int)steps;
    r = sim_clock(s->sim, rest(s), &s->why);
    sim_resume(s->sim);
    return r;
}

/* Real time, as much as a few steps need. */
static int do_advance(struct script *s)
{
    const struct world *w = sim_world(s->sim);
    int64_t ns = llabs(next_number(s) % NS_PER_S);

    if ((double)ns * w->node.speed > 10 * (double)w->node_plan.step_ns)
        return 0;
    s->steps += (int)sim_advance(s->sim, ns);
    return 0;
}

static int do_fault(struct script *s)
{
    int gpu = next_gpu(s);

    return sim_fault(s->sim, gpu, rest(s), &s->why);
}

static int do_pin(struct script *s)
{
    int gpu = next_gpu(s), id = metric_find(next_word(s));

    return id < 0 ? 0 : sim_pin(s->sim, gpu, (enum metric)id, rest(s), &s->why);
}

static int do_profile(struct script *s)
{
    int gpu = next_gpu(s);

    return sim_set_profile(s->sim, gpu, rest(s), &s->why);
}

static int do_power(struct script *s)
{
    int gpu = next_gpu(s);

    return sim_set_power_limit(s->sim, gpu, next_number(s), &s->why);
}

static int do_lock(struct script *s)
{
    int gpu = next_gpu(s);
    int64_t low = next_number(s), high = next_number(s);

    return sim_lock_sm_clock(s->sim, gpu, low, high, &s->why);
}

static int do_lock_memory(struct script *s)
{
    int gpu = next_gpu(s);
    int64_t low = next_number(s), high = next_number(s);

    return sim_lock_memory_clock(s->sim, gpu, low, high, &s->why);
}

static int do_application(struct script *s)
{
    int gpu = next_gpu(s);
    int64_t memory = next_number(s), sm = next_number(s);

    return sim_set_application_clocks(s->sim, gpu, memory, sm, &s->why);
}

static int do_persistence(struct script *s)
{
    int gpu = next_gpu(s);

    return sim_set_persistence_mode(s->sim, gpu, next_number(s) != 0, &s->why);
}

static int do_compute(struct script *s)
{
    int gpu = next_gpu(s);

    return sim_set_compute_mode(s->sim, gpu, (int)(next_number(s) % 16), &s->why);
}

static int do_ecc(struct script *s)
{
    int gpu = next_gpu(s);

    return sim_set_ecc_mode(s->sim, gpu, next_number(s) != 0, &s->why);
}

static int do_mig(struct script *s)
{
    int gpu = next_gpu(s);

    return sim_set_mig_mode(s->sim, gpu, next_number(s) != 0, &s->why);
}

static int do_accounting(struct script *s)
{
    int gpu = next_gpu(s);
    int64_t how = next_number(s) % 3;

    return how == 2 ? sim_clear_accounting(s->sim, gpu, &s->why)
                    : sim_set_accounting_mode(s->sim, gpu, how != 0, &s->why);
}

/* What is done with a workload that the rest of the line describes. */
typedef int workload_fn(struct script *s, const char *name, struct workload_spec *spec);

static int with_workload(struct script *s, workload_fn *go)
{
    const char *name = next_word(s);
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;
    int r = workload_parse(&spec, "workload", rest(s), &arena, &s->why);

    if (r == 0) {
        snprintf(spec.name, sizeof(spec.name), "%s", name);
        r = go(s, name, &spec);
    }
    arena_release(&arena);
    return r;
}

static int add(struct script *s, const char *name, struct workload_spec *spec)
{
    (void)name;
    return sim_add_workload(s->sim, spec, NULL, &s->why);
}

static int replace(struct script *s, const char *name, struct workload_spec *spec)
{
    return sim_replace_workload(s->sim, name, spec, s->steps % 2, &s->why);
}

static int identify(struct script *s, const char *name, struct workload_spec *spec)
{
    return sim_identify_workload(s->sim, name, spec, &s->why);
}

static int do_instance(struct script *s)
{
    int gpu = next_gpu(s);

    return sim_mig(s->sim, gpu, rest(s), &s->why);
}

static int do_run(struct script *s)
{
    return with_workload(s, add);
}

static int do_replace(struct script *s)
{
    return with_workload(s, replace);
}

static int do_identify(struct script *s)
{
    return with_workload(s, identify);
}

/* A workload as the world describes it goes on as it is. */
static int do_again(struct script *s)
{
    const struct world *w = sim_world(s->sim);
    int k = plan_find_workload(w, rest(s)), r = 0;
    struct arena arena = ARENA_INIT;
    struct workload_spec spec;

    if (k >= 0 && plan_describe_workload(w, k, &spec, &arena) == 0)
        r = sim_replace_workload(s->sim, rest(s), &spec, false, &s->why);
    arena_release(&arena);
    return r;
}

static int do_attach(struct script *s)
{
    return sim_attach_workload(s->sim, rest(s), &s->why);
}

static int do_detach(struct script *s)
{
    return sim_detach_workload(s->sim, rest(s), &s->why);
}

static int do_stop(struct script *s)
{
    return sim_stop_workload(s->sim, rest(s), &s->why);
}

static int do_remove(struct script *s)
{
    return sim_remove_workload(s->sim, rest(s), &s->why);
}

static int do_config(struct script *s)
{
    return sim_apply(s->sim, &configs[(uint64_t)next_number(s) % NODES], &s->why);
}

/* The letters say what follows the name: see add_argument. */
static const struct command {
    const char *name, *arguments;
    int (*run)(struct script *s);
} commands[] = {
    { "step", "N", do_step },
    { "clock", "K", do_clock },
    { "advance", "H", do_advance },
    { "fault", "G F", do_fault },
    { "pin", "G M", do_pin },
    { "profile", "G P", do_profile },
    { "power", "G L", do_power },
    { "lock", "G H H", do_lock },
    { "lock_memory", "G H H", do_lock_memory },
    { "application", "G H H", do_application },
    { "persistence", "G B", do_persistence },
    { "compute", "G N", do_compute },
    { "ecc", "G B", do_ecc },
    { "mig", "G B", do_mig },
    { "accounting", "G N", do_accounting },
    { "instance", "G I", do_instance },
    { "run", "W Y", do_run },
    { "replace", "W Y", do_replace },
    { "identify", "W Y", do_identify },
    { "again", "W", do_again },
    { "attach", "W", do_attach },
    { "detach", "W", do_detach },
    { "stop", "W", do_stop },
    { "remove", "W", do_remove },
    { "config", "N", do_config },
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void run_line(struct script *s, char *line)
{
    uint64_t before = fuzz_published(s->sim);
    const char *word;
    int r = 0;

    s->rest = line;
    word = next_word(s);
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, word))
            r = commands[i].run(s);
    check_refusal(r, &s->why);
    MUST(r == 0 || fuzz_published(s->sim) == before, "'%s' was refused and still changed something",
         word);
    look(s);
}

static void fuzz_script(char *text)
{
    struct script s = { 0 };
    int lines = 0;

    load_nodes();
    s.sim = sim_new(&configs[0], &s.why);
    MUST(s.sim, "%s", why_text(&s.why));
    while (text && lines++ < LINES_MAX)
        run_line(&s, strsep(&text, "\n"));
    make_steps(&s, 5);
    sim_free(s.sim);
    invariants_release(&s.iv);
}

/* A workload alone: read, then run for a while on the first node. */
static void fuzz_workload(const char *text)
{
    struct script s = { 0 };
    struct workload_spec spec;
    struct arena arena = ARENA_INIT;
    int r = workload_parse(&spec, "workload", text, &arena, &s.why);

    check_refusal(r, &s.why);
    if (r == 0) {
        load_nodes();
        s.sim = sim_new(&configs[0], &s.why);
        MUST(s.sim, "%s", why_text(&s.why));
        snprintf(spec.name, sizeof(spec.name), "fuzzed");
        r = sim_add_workload(s.sim, &spec, NULL, &s.why);
        check_refusal(r, &s.why);
        look(&s);
        make_steps(&s, r == 0 ? 20 : 0);
        sim_free(s.sim);
        invariants_release(&s.iv);
    }
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A text of its own size: reading behind its end is seen. */
    char *text = strndup((const char *)data, size);

    if (!text)
        return 0;
    if (*text == 'w')
        fuzz_workload(text + 1);
    else if (*text)
        fuzz_script(text + 1);
    free(text);
    return 0;
}

/* --- changing an input ----------------------------------------------------------------------- */

static void add_pin(struct text *out, struct rng *rng)
{
    enum metric id = (enum metric)grammar_below(rng, METRIC_COUNT);

    while (!(metric_infos[id].flags & METRIC_FLAG_PIN))
        id = (enum metric)grammar_below(rng, METRIC_COUNT);
    text_addf(out, "%s ", metric_infos[id].name);
    if (grammar_below(rng, 4))
        grammar_amount(out, rng, metric_infos[id].unit);
    else
        text_add(out, "auto");
}

static void add_argument(struct text *out, struct rng *rng, char letter)
{
    static const char *const clocks[] = { "pause", "resume", "step 1s", "speed 0", "speed 1e3" };
    static const char *const instances[] = {
        "create 1g.10gb",     "create 3g.40gb at 4", "create 9",       "create-gi 3g.40gb",
        "create-ci 1 2",      "create-ci 7",         "create 7g.80gb", "create-ci 2 1",
        "destroy 1",          "destroy 7",           "destroy 1 0",    "destroy 0",
        "create-ci 1 1 at 1",
    };

    switch (letter) {
    case 'B': /* on or off */
        text_addf(out, "%d", (int)grammar_below(rng, 2));
        break;
    case 'F':
        grammar_fault(out, rng);
        break;
    case 'G': /* a GPU */
        text_addf(out, "%d", (int)grammar_below(rng, 7));
        break;
    case 'H': /* a clock in kHz, or time in ns */
        text_addf(out, "%d", (int)(grammar_below(rng, 4) * grammar_below(rng, 1000) * 1000));
        break;
    case 'I': /* a command for MIG instances */
        text_add(out, GRAMMAR_PICK(rng, instances));
        break;
    case 'K':
        text_add(out, GRAMMAR_PICK(rng, clocks));
        break;
    case 'L': /* a power limit in mW */
        text_addf(out, "%d", (int)grammar_below(rng, 8) * 100000);
        break;
    case 'M':
        add_pin(out, rng);
        break;
    case 'N':
        text_addf(out, "%d", (int)grammar_below(rng, 20));
        break;
    case 'P':
        grammar_profile(out, rng);
        break;
    case 'W': /* the name of a workload */
        text_addf(out, "%c", 'a' + (char)grammar_below(rng, 4));
        break;
    case 'Y':
        grammar_mapping(out, rng, &workload_table, 0);
        break;
    default:
        text_addn(out, &letter, 1);
    }
}

static void add_command(struct text *out, struct rng *rng)
{
    const struct command *c = &commands[grammar_below(rng, COMMANDS)];

    text_addf(out, "%s ", c->name);
    for (const char *p = c->arguments; *p; p++)
        add_argument(out, rng, *p);
    text_add(out, "\n");
}

/* A line more before some line, or in its place, or one less. */
static void change_script(struct text *out, struct rng *rng, const char *text, size_t size)
{
    size_t at = grammar_below(rng, size + 1), end;
    uint64_t way = grammar_below(rng, 4);

    while (at && at < size && text[at - 1] != '\n')
        at++;
    for (end = at; end < size && text[end] != '\n';)
        end++;
    text_add(out, at ? "" : "s\n");
    text_addn(out, text, at);
    text_add(out, at && text[at - 1] != '\n' ? "\n" : "");
    if (way)
        add_command(out, rng);
    text_addn(out, text + (way < 2 ? end : at), size - (way < 2 ? end : at));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct rng rng = rng_seeded(seed, "fuzz_command");
    struct text changed = TEXT_INIT;
    const char *text = (const char *)data;
    bool done = true;

    if (!size || grammar_below(&rng, 4) == 0 || !*text)
        return LLVMFuzzerMutate(data, size, room);
    if (*text == 'w') {
        text_add(&changed, "w");
        done = grammar_change(&changed, &rng, &workload_table, text + 1, size - 1);
    } else {
        change_script(&changed, &rng, text, size);
    }
    if (done)
        return fuzz_replace(data, room, &changed);
    text_release(&changed);
    return LLVMFuzzerMutate(data, size, room);
}
