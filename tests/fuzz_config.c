/*
 * Fuzzes the configuration: `make fuzz`, or `fuzz_config FILE` for one input.
 *
 * An input is a configuration, or two of them with a line ====== between. Whatever the bytes are, they
 * are read or refused with a sentence. What is read
 * - prints as text that reads to the same: it prints the same, and its world has the same bytes;
 * - makes a world that keeps tests/invariants.h through its first steps;
 * - changes nothing when it is applied again, and gives way to the second configuration whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <string.h>

#include "sim/library.h"
#include "sim/schemas.h"
#include "sim/sim.h"
#include "tests/fuzz.h"
#include "tests/grammar.h"
#include "tests/invariants.h"

/* What an input may cost: a large node makes fewer steps, and is not looked at GPU by GPU. */
enum { STEPS_MAX = 12, WORK_MAX = 400, LOOKED_AT_MAX = 64 };

static const char separator[] = "\n======\n";

/* --- a library of its own -------------------------------------------------------------------- */

/*
 * Every configuration reads the whole library anew, which would take nine tenths of the time here. This
 * one stands in for sim/library.c: the built-in profiles and a few unlike models, parsed once.
 */
static const char *const models[] = { "a100-sxm4-40gb", "gb200", "rtx-4090", "tesla-k80" };

enum { FILES_MAX = 64 };

static struct ydoc docs[FILES_MAX];

static bool is_wanted(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    if (strncmp(path, folder, n) || path[n] != '/')
        return false;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (!strncmp(path + n + 1, models[i], strlen(models[i])))
            return true;
    return strcmp(folder, "models") != 0;
}

int library_load(const char *folder, const char *overrides, struct arena *arena, library_add *add,
                 void *into, struct why *why)
{
    int r = 0;

    (void)overrides;
    for (int i = 0; schema_files[i].path && r == 0; i++) {
        const struct schema_file *f = &schema_files[i];
        struct binder b = { .file = f->path, .arena = arena, .why = why };

        if (!is_wanted(f->path, folder))
            continue;
        MUST(i < FILES_MAX, "there are more than %d built-in files", FILES_MAX);
        if (!docs[i].root)
            r = ydoc_parse(&docs[i], f->path, f->text, f->length, why);
        if (r == 0)
            r = add(into, &b, docs[i].root);
        text_release(&b.path);
    }
    return r;
}

int library_read_file(const char *path, char **text, unsigned long *length, struct why *why)
{
    (void)text;
    (void)length;
    return why_set(why, ENOENT, "%s: no files here", path);
}

/* --- a world --------------------------------------------------------------------------------- */

static uint32_t work_of(const struct world *w)
{
    return 1 + w->used[SECTION_GPUS] + w->used[SECTION_SHARES] + w->used[SECTION_WORKLOADS] / 8;
}

static void look(struct invariants *iv, const struct sim *sim)
{
    if (work_of(sim_world(sim)) <= LOOKED_AT_MAX)
        MUST(invariants_hold(iv, sim), "%s", text_str(&iv->broken));
}

static void run(struct invariants *iv, struct sim *sim)
{
    uint32_t steps = WORK_MAX / work_of(sim_world(sim));

    for (uint32_t i = 0; i <= steps && i < STEPS_MAX; i++) {
        sim_step(sim);
        look(iv, sim);
    }
}

static struct sim *world_of(const struct config *cfg)
{
    struct why why = { 0 };
    struct sim *sim = sim_new(cfg, &why);

    /* A configuration can be right and still ask for more memory than a GPU has. */
    MUST(sim || *why_text(&why), "no world, and not a word why");
    why_release(&why);
    return sim;
}

/* --- once more, from its own print ----------------------------------------------------------- */

static void read_back(struct config *again, const struct text *printed)
{
    struct why why = { 0 };
    struct text twice = TEXT_INIT;
    int r = config_parse(again, text_str(printed), printed->length, NULL, &why);

    MUST(r == 0, "what was printed is refused: %s\n%s", why_text(&why), text_str(printed));
    config_print(&twice, again);
    MUST(!strcmp(text_str(printed), text_str(&twice)),
         "what was printed reads to something else:\n%s======\n%s", text_str(printed),
         text_str(&twice));
    text_release(&twice);
    why_release(&why);
}

static void check_same_world(const struct sim *a, const struct sim *b)
{
    const struct world *wa = sim_world(a), *wb = sim_world(b);
    const char *ca = (const char *)wa, *cb = (const char *)wb;

    uint64_t at = 0;
    int section = -1;

    MUST(wa->bytes == wb->bytes, "what was printed makes a world of another size");
    if (!memcmp(wa, wb, wa->bytes))
        return;
    while (ca[at] == cb[at])
        at++;
    while (section + 1 < SECTION_COUNT && wa->offset[section + 1] <= at)
        section++;
    MUST(false, "what was printed makes another world: byte %" PRIu64 " of section %d differs",
         section < 0 ? at : at - wa->offset[section], section);
}

/* --- the same configuration, applied again --------------------------------------------------- */

/* Going on untouched: the streams, counters and clocks of every GPU, and every run. */
static void check_untouched(const struct world *before, const struct world *after)
{
    MUST(!memcmp(before->used, after->used, sizeof(before->used)),
         "sections are larger or smaller");
    for (uint32_t i = 0; i < after->used[SECTION_GPUS]; i++) {
        const struct gpu *was = &world_gpus(before)[i], *is = &world_gpus(after)[i];

        MUST(was->rng.state == is->rng.state && was->energy_uj == is->energy_uj &&
                 was->profile_since_ns == is->profile_since_ns &&
                 was->next_reading_ns == is->next_reading_ns &&
                 !memcmp(&was->settings, &is->settings, sizeof(was->settings)),
             "GPU %u was not left alone", i);
    }
    for (uint32_t k = 0; k < after->used[SECTION_RUNS]; k++) {
        const struct run *was = &world_runs(before)[k], *is = &world_runs(after)[k];

        MUST(world_workloads(before)[k].id == world_workloads(after)[k].id &&
                 was->state == is->state && was->progress_ns == is->progress_ns &&
                 was->rng.state == is->rng.state,
             "workload '%s' was not left alone", world_workloads(after)[k].name);
    }
}

static void apply_again(struct invariants *iv, struct sim *sim, const struct config *cfg)
{
    struct why why = { 0 };
    const struct world *before = sim_world(sim);
    int r = sim_apply(sim, cfg, &why);

    MUST(r == 0, "it is refused the second time: %s", why_text(&why));
    look(iv, sim);
    check_untouched(before, sim_world(sim));
    why_release(&why);
}

/* --- another configuration ------------------------------------------------------------------- */

static void apply_other(struct invariants *iv, struct sim *sim, const char *text, size_t length)
{
    struct why why = { 0 };
    struct config cfg;
    uint64_t before = fuzz_published(sim);
    int r = config_parse(&cfg, text, length, NULL, &why);

    if (r == 0) {
        r = sim_apply(sim, &cfg, &why);
        config_release(&cfg);
    }
    check_refusal(r, &why);
    MUST(r == 0 || fuzz_published(sim) == before, "refused, and half applied");
    look(iv, sim);
    if (r == 0)
        run(iv, sim);
}

/* --- an input -------------------------------------------------------------------------------- */

static void live(const struct config *cfg, const struct config *again, const char *other, size_t n)
{
    struct invariants iv = INVARIANTS_INIT, iv_again = INVARIANTS_INIT;
    struct sim *sim = world_of(cfg), *sim_again = world_of(again);

    MUST(!sim == !sim_again, "what was printed makes no world");
    if (sim) {
        look(&iv, sim);
        run(&iv, sim);
        run(&iv_again, sim_again);
        check_same_world(sim, sim_again);
        apply_again(&iv, sim, cfg);
        if (other)
            apply_other(&iv, sim, other, n);
    }
    sim_free(sim);
    sim_free(sim_again);
    invariants_release(&iv);
    invariants_release(&iv_again);
}

static void fuzz(const char *text, size_t length, const char *other, size_t n)
{
    struct why why = { 0 };
    struct text printed = TEXT_INIT;
    struct config cfg, again;
    int r = config_parse(&cfg, text, length, NULL, &why);

    check_refusal(r, &why);
    if (r < 0)
        return;
    config_print(&printed, &cfg);
    read_back(&again, &printed);
    live(&cfg, &again, other, n);
    config_release(&again);
    config_release(&cfg);
    text_release(&printed);
}

/* What is not even YAML, as most inputs are, is not worth a configuration. */
static bool is_yaml(const char *text, size_t length)
{
    struct why why = { 0 };
    struct ydoc doc;
    int r = ydoc_parse(&doc, "input", text, length, &why);

    check_refusal(r, &why);
    if (r == 0)
        ydoc_release(&doc);
    return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *cut = memmem(data, size, separator, sizeof(separator) - 1);
    size_t length = cut ? (size_t)(cut - text) : size;
    const char *other = cut ? cut + sizeof(separator) - 1 : NULL;
    size_t n = cut ? size - length - (sizeof(separator) - 1) : 0;

    if (is_yaml(text, length))
        fuzz(text, length, other, n);
    return 0;
}

/* --- changing an input ----------------------------------------------------------------------- */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct rng rng = rng_seeded(seed, "fuzz_config");
    struct text changed = TEXT_INIT;

    if (grammar_below(&rng, 3) == 0)
        return LLVMFuzzerMutate(data, size, room);
    if (grammar_below(&rng, 200) == 0) /* another configuration to apply */
        text_addf(&changed, "%.*s%s{}", (int)size, (const char *)data, separator);
    else if (!grammar_change(&changed, &rng, &config_table, (const char *)data, size)) {
        text_release(&changed);
        return LLVMFuzzerMutate(data, size, room);
    }
    return fuzz_replace(data, room, &changed);
}
