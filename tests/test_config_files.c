/*
 * Files of a configuration: the file itself, and models and profiles in a directory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/config.h"

static void put_file(const char *directory, const char *name, const char *text)
{
    char *path;
    FILE *f;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        bail("out of memory");
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        bail("%s cannot be written", path);
    free(path);
}

static void make_folder(const char *directory, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", directory, name) < 0)
        bail("out of memory");
    if (mkdir(path, 0700) < 0)
        bail("%s cannot be made", path);
    free(path);
}

static void remove_tree(const char *directory)
{
    static const char *const parts[] = { "models/own.yaml", "models/t4.yaml",     "models/.x.yaml",
                                         "models/note.txt", "profiles/mine.yaml", "config.yaml",
                                         "models",          "profiles",           "." };
    char path[4096];

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, parts[i]);
        remove(path);
    }
    rmdir(directory);
}

/* A model with what a model must have. The caller frees it. */
static char *model_text(const char *name, const char *power)
{
    char *text;

    if (asprintf(
            &text,
            "name: %s\n"
            "product: Own Board\n"
            "architecture: Ampere\n"
            "compute_capability: 8.0\n"
            "cuda_cores: 1024\n"
            "multiprocessors: 8\n"
            "pci: {device_id: 0x20b0, subsystem_id: 0, generation: 4, width: 16}\n"
            "memory: {total: 8GiB, reserved: 256MiB, bar1: 256MiB, bus_width: 256}\n"
            "power: {%s}\n"
            "clocks:\n"
            "  sm: {min: 210MHz, idle: 210MHz, max: 1500MHz, step: 15MHz}\n"
            "  memory: [5001MHz, 405MHz]\n"
            "  video: {idle: 500MHz, max: 1200MHz}\n"
            "thermal: {max_operating: 85C, slowdown: 90C, shutdown: 95C, time_constant: 20s}\n",
            name, power) < 0)
        bail("out of memory");
    return text;
}

static void with_schemas(struct node *n, const char *directory, const char *text)
{
    struct config_options options = { .schemas = directory };

    read_node(n, text, &options);
}

static void test_schemas(const char *directory)
{
    char *own = model_text("Own-1", "idle: 5W, min: 10W, default: 30W, max: 40W");
    char *t4 = model_text("T4", "idle: 5W, min: 10W, default: 66W, max: 67W");
    struct node n;

    with_schemas(&n, directory, "gpus: {model: T4}");
    is_int(n.r, 0, "an empty directory changes nothing");
    is_int(gpu(&n, 0)->power_limit_mw, 70000, "… not the T4");
    release(&n);

    make_folder(directory, "models");
    put_file(directory, "models/own.yaml", own);
    put_file(directory, "models/t4.yaml", t4);
    put_file(directory, "models/.x.yaml", "broken: [");
    put_file(directory, "models/note.txt", "broken: [");
    with_schemas(&n, directory, "gpus: [{model: T4}, {model: own_1}, {model: L4}]\nprofile: wave");
    is_int(n.r, 0, "a directory with models is read %s", why_text(&n.why));
    if (n.r == 0) {
        is_int(gpu(&n, 0)->power_limit_mw, 66000, "a file stands over a built-in model");
        is_str(gpu(&n, 1)->model->name, "Own-1", "another one is added");
        is_int(gpu(&n, 1)->power_limit_mw, 30000, "… as it is written");
        is_str(gpu(&n, 2)->model->name, "L4", "the others are still there");
    }
    release(&n);

    make_folder(directory, "profiles");
    put_file(directory, "profiles/mine.yaml",
             "name: mine\nmetrics: {temperature_gpu_c: {random: {min: 1, max: 2}}}\n");
    with_schemas(&n, directory, "gpus: {count: 2}\nprofile: [mine, static]");
    is_int(n.r, 0, "a profile is added %s", why_text(&n.why));
    if (n.r == 0)
        is_str(profile_of(&n, 0), "mine", "… and used");
    release(&n);
    free(own);
    free(t4);
}

static void broken_schema(const char *directory, const char *file, const char *text, int error,
                          const char *words)
{
    struct node n;

    put_file(directory, file, text);
    with_schemas(&n, directory, "");
    is_int(n.r, -error, "%s: %s is refused", file, words);
    contains(why_text(&n.why), words, "… in a sentence");
    contains(why_text(&n.why), file, "… that names the file");
    release(&n);
}

static void test_broken_schemas(const char *directory)
{
    char *bad_power = model_text("Own-1", "idle: 5W, min: 50W, default: 30W, max: 40W");
    struct node n;

    broken_schema(directory, "models/own.yaml", "name: [\n", EINVAL,
                  "own.yaml:2:1: not valid YAML");
    broken_schema(directory, "models/own.yaml", "nmae: x\n", EINVAL,
                  "own.yaml:1:1: unknown key 'nmae' in a model; did you mean 'name'?");
    broken_schema(directory, "models/own.yaml", "", EINVAL,
                  "own.yaml:1:1: a model needs the key 'name'");
    broken_schema(directory, "models/own.yaml", bad_power, ERANGE,
                  "power: must have idle < default and min <= default <= max");
    put_file(directory, "models/own.yaml", "");
    remove_tree(directory);
    if (mkdir(directory, 0700) < 0)
        bail("%s cannot be made", directory);
    make_folder(directory, "profiles");
    broken_schema(directory, "profiles/mine.yaml", "name: cycle\n", EINVAL,
                  "mine.yaml:1:7: name: found 'cycle'; allowed:");
    broken_schema(directory, "profiles/mine.yaml", "name: a,b\n", EINVAL,
                  "mine.yaml:1:7: name: found 'a,b'; allowed:");
    broken_schema(directory, "profiles/mine.yaml", "name: x\nmetrics: {temperature_gpu: 5}\n",
                  EINVAL,
                  "mine.yaml:2:11: metrics: 'temperature_gpu' is not a metric; did you mean "
                  "'temperature_gpu_c'?");
    broken_schema(directory, "profiles/mine.yaml", "metrics: {temperature_gpu_c: 5}\n", EINVAL,
                  "mine.yaml:1:1: a profile needs the key 'name'");
    free(bad_power);

    with_schemas(&n, "/nowhere/at/all", "");
    is_int(n.r, -ENOENT, "a directory that is not there is refused");
    is_str(why_text(&n.why), "/nowhere/at/all/models: No such file or directory", "… by its name");
    release(&n);
}

static void test_files(const char *directory)
{
    struct config cfg;
    struct why why = { 0 };
    char path[4096];

    snprintf(path, sizeof(path), "%s/config.yaml", directory);
    is_int(config_load(&cfg, path, NULL, &why), -ENOENT, "a file that is not there");
    contains(why_text(&why), "config.yaml: No such file or directory", "… is named");
    config_release(&cfg); /* a failure leaves nothing, and may be released all the same */
    is_int(config_load(&cfg, directory, NULL, &why), -EISDIR, "a directory");
    contains(why_text(&why), ": Is a directory", "… is named");
    config_release(&cfg);
    put_file(directory, "config.yaml", "seed: 5\nspeed: fast\n");
    is_int(config_load(&cfg, path, NULL, &why), -EINVAL, "a file with a mistake");
    like(why_text(&why), "^/.*/config.yaml:2:8: speed: found 'fast'; allowed: a number$",
         "… is named with line and column");
    config_release(&cfg);
    put_file(directory, "config.yaml", "seed: 5\n");
    is_int(config_load(&cfg, path, NULL, &why), 0, "a file without");
    is_int(cfg.seed, 5, "… is read");
    config_release(&cfg);
    why_release(&why);
}

int main(void)
{
    char directory[] = "/tmp/test_config.XXXXXX";

    if (!mkdtemp(directory))
        bail("no directory can be made in /tmp");
    test_schemas(directory);
    test_broken_schemas(directory);
    test_files(directory);
    remove_tree(directory);
    return tap_done();
}
