/*
 * Nodes of all areas: device nodes, what a lost GPU takes with it, that every row of every table renders, and how
 * far a name is looked for among many. What single files say: test_nodes_proc.c, test_nodes_sys.c, test_nodes_k8s.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/majors.h"
#include "tests/tree.h"

/* --- dev ------------------------------------------------------------------------------------- */

static void test_devices(void)
{
    static const struct {
        const char *name;
        int major, minor;
        uint32_t mode;
    } nodes[] = {
        { "dev/nvidia0", MAJOR_NVIDIA, 0, 0660 },
        { "dev/nvidia1", MAJOR_NVIDIA, 0, 0660 }, /* the minor is the plan's */
        { "dev/nvidiactl", 195, 255, 0660 },
        { "dev/nvidia-modeset", 195, 254, 0660 },
        { "dev/nvidia-uvm", 510, 0, 0660 },
        { "dev/nvidia-uvm-tools", 510, 1, 0660 },
        { "dev/nvidia-caps/nvidia-cap1", 235, 1, 0400 },
        { "dev/nvidia-caps/nvidia-cap2", 235, 2, 0444 },
    };
    struct place place;

    mount_node("{gpus: {count: 2}, access: {dev_mode: 0660}}\n");
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        if (!ok(find(nodes[i].name, &place) == 0, "%s", nodes[i].name))
            continue;
        is_int(place.cx.def->arg, (int64_t)nodes[i].major << 20 | nodes[i].minor, "its number");
        is_int(tree_mode(&place), S_IFCHR | nodes[i].mode, "its mode");
    }
    ok(!exists("dev/nvidia2"), "there are as many as GPUs");
    mount_node("gpus: {count: 1, model: T4}\n");
    ok(!exists("dev/nvidia-caps"), "without MIG there are no capabilities");
    ok(exists("dev/nvidiactl"), "but the others");
    mount_node("gpus: [{count: 1, minor: 7}]\n");
    ok(exists("dev/nvidia7") && !exists("dev/nvidia0"), "minors need not begin at 0");
}

/* --- a GPU that is lost ---------------------------------------------------------------------- */

static void test_lost(void)
{
    static const char *const paths[] = {
        "dev/nvidia0",
        "proc/driver/nvidia/gpus/0000:06:00.0",
        "proc/driver/nvidia/gpus/0000:06:00.0/information",
        "sys/bus/pci/devices/0000:06:00.0",
        "sys/bus/pci/drivers/nvidia/0000:06:00.0",
        "sys/devices/pci0000:06",
        "sys/devices/pci0000:06/0000:06:00.0",
        "sys/devices/pci0000:06/0000:06:00.0/vendor",
        "sys/devices/pci0000:06/0000:06:00.0/power",
    };
    size_t n = sizeof(paths) / sizeof(paths[0]);

    mount_node("gpus: {count: 2}\n");
    sim_fault(sim, 0, "fallen_off_bus", NULL);
    for (size_t i = 0; i < n; i++)
        ok(!exists(paths[i]), "%s is gone", paths[i]);
    ok(exists("dev/nvidia1") && exists("sys/bus/pci/devices/0000:17:00.0"), "the other is there");
    contains(cat("k8s/labels"), "nvidia.com/gpu.count=1\n", "the label counts what is there");
    sim_fault(sim, 1, "fallen_off_bus", NULL);
    ok(exists("proc/driver/nvidia/gpus") && exists("sys/bus/pci/devices"), "directories stay");
    contains(cat("k8s/labels"), "nvidia.com/gpu.present=false\nnvidia.com/gpu.count=0\n",
             "nothing is left");
    sim_fault(sim, 0, "recover", NULL);
    for (size_t i = 0; i < n; i++)
        ok(exists(paths[i]), "%s is back", paths[i]);
}

/* --- every row ------------------------------------------------------------------------------- */

static const struct node_def *const tables[] = { dev_nodes, proc_nodes, sys_nodes, k8s_nodes };
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

/* Walks everything and notes which rows were met. */
struct walk {
    bool met[TABLES][256];
    int broken; /* rows that do not render as they should */
    char where[512];
};

/* The mark of a row, or NULL for a row of another area. */
static bool *mark_of(struct walk *walk, const struct node_def *def)
{
    for (int t = 0; t < TABLES; t++)
        for (int row = 0; tables[t][row].path; row++)
            if (&tables[t][row] == def)
                return &walk->met[t][row];
    return NULL;
}

static bool renders(const struct place *place, const char *path)
{
    const struct node_def *def = place->cx.def;

    if (def->flags & NODE_DEVICE)
        return true;
    if (render(place) < 0 || content.failed || !content.length)
        return false;
    if (def->flags & NODE_BINARY)
        return (int64_t)content.length == def->arg;
    if (S_ISLNK(def->mode))
        return follow(path) != NULL;
    return content.data[content.length - 1] == '\n';
}

static int walk_into(void *into, const char *name, const struct place *place)
{
    struct tree_view view = view_now();
    struct walk *walk = into;
    size_t before = strlen(walk->where);
    bool *met = mark_of(walk, place->cx.def);

    snprintf(walk->where + before, sizeof(walk->where) - before, "%s%s", before ? "/" : "", name);
    if (place->directory)
        tree_list(&view, place, walk_into, walk);
    if (met)
        *met = true;
    if (met && !renders(place, walk->where)) {
        diag("%s is broken", walk->where);
        walk->broken++;
    }
    walk->where[before] = '\0';
    return 0;
}

/* Rows of MIG instances are there only with one. */
static void make_instance(const struct gpu_model *model)
{
    char text[32];

    if (!model->mig.count)
        return;
    snprintf(text, sizeof(text), "create %s", model->mig.items[0].name);
    sim_set_mig_mode(sim, 2, true, NULL);
    sim_mig(sim, 2, text, NULL);
}

static void test_every_row(void)
{
    static struct walk walk;
    struct model_set set;
    struct place root;
    struct why why = { 0 };
    int missed = 0;

    if (model_set_load(&set, NULL, &why) < 0)
        bail("%s", why_text(&why));
    for (int i = 0; i < set.count; i++) {
        struct tree_view view;
        char yaml[128];

        snprintf(yaml, sizeof(yaml), "gpus: {count: 3, model: %s}\n", set.models[i].name);
        mount_node(yaml);
        make_instance(&set.models[i]);
        sim_run(sim, 2 * SEC);
        view = view_now();
        tree_resolve(&view, TREE_ROOT, &root);
        walk.broken = 0;
        tree_list(&view, &root, walk_into, &walk);
        is_int(walk.broken, 0, "every file of %s has content, and every link an end",
               set.models[i].name);
    }
    for (int t = 0; t < TABLES; t++)
        for (int row = 0; tables[t][row].path; row++)
            if (!walk.met[t][row]) {
                diag("%s was not met", tables[t][row].path);
                missed++;
            }
    is_int(missed, 0, "every row was met");
    model_set_release(&set);
}

/* --- many GPUs ------------------------------------------------------------------------------- */

/* So many GPUs and workloads were looked at on the way to a path, which must be there. */
static int64_t looks_for(const char *path)
{
    looked = 0;
    return exists(path) ? (int64_t)looked : -1;
}

static void test_many(void)
{
    static const char *const paths[] = {
        "gpus/1000/metrics/power_usage_mw",
        "dev/nvidia1000",
        "gpus/by-node/rack-125/0",
        "sys/devices/pci%r/%b/vendor",
        "proc/driver/nvidia/gpus/%b/information",
        "gpus/by-bus-id/%b",
        "gpus/by-uuid/%u",
        "workloads/w500/state",
    };
    struct tree_view view;
    struct place place;
    char path[256], name[32];
    int64_t looks;

    mount_node("gpus: {count: 8, node: 'rack-[0-127]'}\n");
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        node_workload(sim, name, "{activity: 0}", NULL);
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const struct gpu_plan *p = &world_gpu_plans(sim_world(sim))[1000];
        struct text whole = TEXT_INIT;

        for (const char *at = paths[i]; *at; at++)
            if (*at != '%')
                text_addn(&whole, at, 1);
            else if (*++at == 'u')
                text_add(&whole, p->uuid);
            else
                text_addf(&whole, *at == 'r' ? "%04x:%02x" : "%04x:%02x:%02x.%x", p->domain, p->bus,
                          p->device, p->function);
        snprintf(path, sizeof(path), "%s", text_str(&whole));
        text_release(&whole);
        looks = looks_for(path);
        ok(looks > 0 && looks <= 8, "%s among 1,024 GPUs: %d looks", paths[i], (int)looks);
    }
    looked = 0;
    is_int(find("sys/devices", &place), 0, "sys/devices");
    view = view_now();
    tree_links(&view, &place);
    ok(looked > 1024 && looked <= 8 * 1024, "its directories are counted with %d looks",
       (int)looked);
}

int main(void)
{
    tree_up();
    test_devices();
    test_lost();
    test_every_row();
    test_many();
    tree_down();
    return tap_done();
}
