/*
 * Recording: values of GPUs over time, as a file. See recording.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fusefs/cli/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/bind.h"
#include "sim/suggest.h"

/* --- writing --------------------------------------------------------------------------------- */

int recording_columns_parse(struct recording_columns *c, const char *list, struct why *why)
{
    bool taken[METRIC_COUNT] = { false };
    char *copy = strdup(list), *rest = copy, *name;
    int r = copy ? 0 : -ENOMEM;

    c->count = 0;
    for (int i = 0; !strcmp(list, "all") && i < METRIC_COUNT; i++)
        c->metrics[c->count++] = i;
    while (r == 0 && strcmp(list, "all") && (name = strsep(&rest, ","))) {
        int id = metric_find(name);
        struct text hint = TEXT_INIT;

        if (id < 0) {
            suggest_add(&hint, name, metric_name_at, NULL);
            r = why_set(why, EINVAL, "'%s' is not a metric%s", name, text_str(&hint));
            text_release(&hint);
        } else if (taken[id]) {
            r = why_set(why, EINVAL, "'%s' is named twice", name);
        } else {
            taken[id] = true;
            c->metrics[c->count++] = id;
        }
    }
    free(copy);
    return r;
}

void recording_heading(struct text *out, enum recording_format format,
                       const struct recording_columns *c)
{
    if (format != RECORDING_CSV)
        return;
    text_add(out, "generation,time_s,gpu");
    for (int i = 0; i < c->count; i++)
        text_addf(out, ",%s", metric_infos[c->metrics[i]].name);
    text_add(out, "\n");
}

static void add_seconds(struct text *out, int64_t ns)
{
    if (ns % NS_PER_MS)
        text_addf(out, "%" PRId64 ".%09" PRId64, ns / NS_PER_S, ns % NS_PER_S);
    else
        text_addf(out, "%" PRId64 ".%03" PRId64, ns / NS_PER_S, ns % NS_PER_S / NS_PER_MS);
}

void recording_line(struct text *out, enum recording_format format,
                    const struct recording_columns *c, const struct reader_node *node, int index,
                    const struct reader_gpu *gpu)
{
    bool json = format == RECORDING_JSON;

    text_addf(out, json ? "{\"generation\":%" PRIu64 ",\"time_s\":" : "%" PRIu64 ",",
              node->generation);
    add_seconds(out, node->now_ns);
    text_addf(out, json ? ",\"gpu\":%d" : ",%d", index);
    for (int i = 0; i < c->count; i++) {
        const struct metric_info *info = &metric_infos[c->metrics[i]];
        int64_t value;
        int r = gpu->lost ? -ENODEV : metric_read(&gpu->sample, c->metrics[i], &value);

        if (!json)
            text_add(out, ",");
        else if (r == 0 || r == -EIO)
            text_addf(out, ",\"%s\":", info->name);
        if (r == 0)
            unit_show(out, info->unit, value);
        else if (r == -EIO)
            text_add(out, json ? "null" : "NaN");
    }
    text_add(out, json ? "}\n" : "\n");
}

/* --- reading: what is kept ------------------------------------------------------------------- */

/* One reading of one file. */
struct reading {
    struct recording *r;
    const struct recording_options *options;
    struct why *why;
    int number; /* of the line */
    bool json;
    struct recording_column *columns; /* of a table; owned */
    int column_count;
    char *heading; /* as written; owned */
    /* the line being read */
    bool has_time, has_gpu;
    int64_t time_ns;
    struct device_name gpu;
    struct recorded found[METRIC_COUNT];
    int found_count;
    /* what each GPU last had, METRIC_COUNT for each; owned */
    struct recorded *last;
    int64_t *last_ns;
};

static int refuse(const struct reading *in, int column, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int refuse(const struct reading *in, int column, const char *name, const char *fmt, ...)
{
    struct text said = TEXT_INIT;
    va_list ap;
    int r;

    va_start(ap, fmt);
    text_vaddf(&said, fmt, ap);
    va_end(ap);
    r = why_set(in->why, EINVAL, "%s:%d:%d: %s%s%s", in->r->source, in->number, column,
                name ? name : "", name ? ": " : "", text_str(&said));
    text_release(&said);
    return r;
}

static int out_of_memory(const struct reading *in)
{
    return why_set(in->why, ENOMEM, "%s: out of memory", in->r->source);
}

/* Makes room for one more; -ENOMEM. */
static int grow(void **items, size_t *room, size_t count, size_t size)
{
    size_t wanted = *room ? *room * 2 : 256;
    void *more;

    if (count < *room)
        return 0;
    more = realloc(*items, wanted * size);
    if (!more)
        return -ENOMEM;
    *items = more;
    *room = wanted;
    return 0;
}

static int find_gpu(struct reading *in)
{
    struct recording *r = in->r;
    int i = 0;
    void *gpus, *last, *last_ns;

    while (i < r->gpu_count && strcmp(r->gpus[i].text, in->gpu.text))
        i++;
    if (i < r->gpu_count)
        return i;
    gpus = realloc(r->gpus, (size_t)(i + 1) * sizeof(*r->gpus));
    if (gpus)
        r->gpus = gpus;
    last = realloc(in->last, (size_t)(i + 1) * METRIC_COUNT * sizeof(*in->last));
    if (last)
        in->last = last;
    last_ns = realloc(in->last_ns, (size_t)(i + 1) * sizeof(*in->last_ns));
    if (last_ns)
        in->last_ns = last_ns;
    if (!gpus || !last || !last_ns)
        return out_of_memory(in);
    r->gpus[i] = in->gpu;
    in->last_ns[i] = INT64_MIN;
    for (int k = 0; k < METRIC_COUNT; k++)
        in->last[(size_t)i * METRIC_COUNT + (size_t)k] = (struct recorded){ .state = -1 };
    return r->gpu_count++;
}

static int keep_value(struct reading *in, int gpu, const struct recorded *v)
{
    struct recorded *last = &in->last[(size_t)gpu * METRIC_COUNT + (size_t)v->metric];
    struct recording *r = in->r;

    /* A sensor that goes on failing is said again: each failure lasts until the next line. */
    if (last->state == v->state && last->value == v->value && v->state != RECORDED_FAILED)
        return 0;
    if (grow((void **)&r->values, &r->value_room, r->value_count, sizeof(*r->values)) < 0)
        return out_of_memory(in);
    *last = *v;
    r->values[r->value_count++] = *v;
    return 0;
}

static int keep_line(struct reading *in)
{
    struct recording *r = in->r;
    int gpu, k = 0;

    if (!in->has_time)
        return refuse(in, 1, NULL, "does not say its time");
    if (!in->has_gpu && !in->options->single)
        return refuse(in, 1, NULL,
                      "does not say of which GPU it is: no index, uuid or pci.bus_id; --gpu says "
                      "that all lines are of one");
    if (in->options->single)
        snprintf(in->gpu.text, sizeof(in->gpu.text), "0");
    gpu = find_gpu(in);
    if (gpu < 0)
        return gpu;
    if (in->time_ns < in->last_ns[gpu])
        return refuse(in, 1, NULL, "is of a time before the line above, of the same GPU");
    in->last_ns[gpu] = in->time_ns;
    if (grow((void **)&r->lines, &r->line_room, r->line_count, sizeof(*r->lines)) < 0)
        return out_of_memory(in);
    r->lines[r->line_count] = (struct recorded_line){
        .time_ns = in->time_ns, .number = in->number, .gpu = gpu, .first = r->value_count
    };
    for (int result = 0; k < in->found_count; k++)
        if ((result = keep_value(in, gpu, &in->found[k])) < 0)
            return result;
    r->lines[r->line_count].count = r->value_count - r->lines[r->line_count].first;
    r->line_count++;
    return 0;
}

/* --- reading: one value ---------------------------------------------------------------------- */

static int take_metric(struct reading *in, const struct recording_column *c, const char *text,
                       int column)
{
    const enum unit unit = metric_infos[c->metric].unit;
    struct recorded v = { .column = column, .metric = (int16_t)c->metric };
    struct text joined = TEXT_INIT;
    int r = 0;

    if (!strcasecmp(text, "nan"))
        v.state = RECORDED_FAILED;
    else if (smi_is_nothing(text))
        v.state = RECORDED_NONE;
    else if (!strcasecmp(text, "yes") || !strcasecmp(text, "no"))
        v.value = !strcasecmp(text, "yes");
    else {
        /* "1234 MiB" without the blank; a bare number with its unit */
        for (const char *p = text; *p; p++)
            text_addn(&joined, p, *p != ' ');
        if (c->unit && text[strlen(text) - 1] >= '0' && text[strlen(text) - 1] <= '9')
            text_add(&joined, c->unit);
        r = unit_parse(unit, text_str(&joined), UNIT_BARE_SHOWN, &v.value, NULL);
        if (r == 0 && v.value < 0)
            r = -ERANGE;
    }
    if (r < 0)
        r = refuse(in, column, metric_infos[c->metric].name,
                   r == -ERANGE ? "'%.60s' is out of range" : "'%.60s' is not a value in %s", text,
                   unit_name(unit));
    for (int i = 0; r == 0 && i < in->found_count; i++)
        if (in->found[i].metric ==
            v.metric) { /* power.draw and power.draw.instant: the first counts */
            text_release(&joined);
            return 0;
        }
    if (r == 0)
        in->found[in->found_count++] = v;
    text_release(&joined);
    return r;
}

static int take_time(struct reading *in, const char *text, int column)
{
    struct text seconds = TEXT_INIT;
    int r;

    text_addf(&seconds, "%ss", text);
    r = unit_parse(UNIT_NANOSECOND, text_str(&seconds), UNIT_BARE_REFUSED, &in->time_ns, NULL);
    if (r < 0)
        r = refuse(in, column, "time_s", "'%.60s' is not a number of seconds", text);
    in->has_time = true;
    text_release(&seconds);
    return r;
}

static int take_value(struct reading *in, const struct recording_column *c, const char *text,
                      int column)
{
    switch (c->kind) {
    case COLUMN_TIME:
        return take_time(in, text, column);
    case COLUMN_TIMESTAMP:
        in->has_time = true;
        if (smi_timestamp(text, &in->time_ns) < 0)
            return refuse(in, column, "timestamp",
                          "'%.60s' is not a time; allowed: like 2024/01/31 12:34:56.789", text);
        return 0;
    case COLUMN_GPU:
        if (!*text || strlen(text) >= sizeof(in->gpu.text) || strchr(text, '/'))
            return refuse(in, column, "gpu",
                          "'%.60s' is not a GPU; allowed: an index, UUID or bus id", text);
        if (!in->has_gpu) /* of index and uuid the first counts */
            snprintf(in->gpu.text, sizeof(in->gpu.text), "%s", text);
        in->has_gpu = true;
        return 0;
    case COLUMN_METRIC:
        return take_metric(in, c, text, column);
    default:
        return 0;
    }
}

/* --- reading: CSV ---------------------------------------------------------------------------- */

/* One of our own columns, or one of nvidia-smi, whose headings have a unit: "power.draw [W]". */
static struct recording_column column_of(const char *name)
{
    int metric = metric_find(name);

    if (!strcmp(name, "time_s"))
        return (struct recording_column){ .kind = COLUMN_TIME };
    if (!strcmp(name, "gpu"))
        return (struct recording_column){ .kind = COLUMN_GPU };
    if (metric >= 0 && metric_is_controlled(metric))
        return (struct recording_column){ .kind = COLUMN_METRIC, .metric = metric };
    return smi_column(name);
}

/* The cell that begins at *at, without the blanks around it; moves *at behind its comma. */
static char *next_cell(char **at, int *column, const char *line)
{
    char *cell = *at, *end;

    cell += strspn(cell, " \t");
    *column = (int)(cell - line) + 1;
    end = cell + strcspn(cell, ",");
    *at = *end ? end + 1 : NULL;
    while (end > cell && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    return cell;
}

static void note_passed_over(struct reading *in, const char *name)
{
    static const char *const expected[] = { "generation", "name", "gpu_name", NULL };
    struct text *out = &in->r->passed_over;

    for (int i = 0; expected[i]; i++)
        if (!strcmp(name, expected[i]))
            return;
    text_addf(out, "%s%s", out->length ? ", " : "", name);
}

static int take_heading(struct reading *in, char *line)
{
    char *at = line;
    bool some = false;
    int column;

    for (const char *p = line; *p; p++)
        in->column_count += *p == ',';
    in->columns = calloc((size_t)++in->column_count, sizeof(*in->columns));
    if (!in->columns)
        return out_of_memory(in);
    for (int i = 0; at; i++) {
        char *name = next_cell(&at, &column, line), *unit = strstr(name, " [");

        if (unit)
            *unit = '\0';
        in->columns[i] = column_of(name);
        some |= in->columns[i].kind == COLUMN_METRIC;
        if (in->columns[i].kind == COLUMN_OTHER)
            note_passed_over(in, name);
    }
    return some ? 0
                : refuse(in, 1, NULL,
                         "no column is a metric that can be dictated; a log without heading needs "
                         "--fields");
}

static int take_cells(struct reading *in, char *line)
{
    int column = 1, count = 1, r = 0;
    char *at = line;

    for (const char *p = line; *p; p++)
        count += *p == ',';
    if (count != in->column_count)
        return refuse(in, (int)strlen(line) + 1, NULL, "has %d column%s; allowed: %d", count,
                      count == 1 ? "" : "s", in->column_count);
    for (int i = 0; r == 0 && at; i++) {
        const char *cell = next_cell(&at, &column, line);

        r = take_value(in, &in->columns[i], cell, column);
    }
    return r < 0 ? r : keep_line(in);
}

static int read_table_line(struct reading *in, char *line)
{
    /* A log that goes on after a restart has its heading again. */
    if (in->heading && !strcmp(line, in->heading))
        return 0;
    if (in->columns)
        return take_cells(in, line);
    in->heading = strdup(line);
    return in->heading ? take_heading(in, line) : out_of_memory(in);
}

/* --- reading: JSON --------------------------------------------------------------------------- */

static int take_member(void *whom, const struct json_member *m)
{
    const struct recording_column c = column_of(m->key);

    return take_value(whom, &c, m->null ? "nan" : m->text, m->column);
}

static int read_json_line(struct reading *in, char *line)
{
    struct why inner = { 0 };
    int column = 1, r = json_line(line, take_member, in, &column, &inner);

    if (r < 0 && inner.text)
        r = refuse(in, column, NULL, "%s", why_text(&inner));
    why_release(&inner);
    return r < 0 ? r : keep_line(in);
}

/* --- reading: all of it ---------------------------------------------------------------------- */

static int read_line(struct reading *in, char *line)
{
    size_t n = strlen(line);

    while (n && (line[n - 1] == '\n' || line[n - 1] == '\r'))
        line[--n] = '\0';
    if (!line[strspn(line, " \t")])
        return 0;
    if (!in->json && !in->columns && line[strspn(line, " \t")] == '{')
        in->json = true;
    in->found_count = 0;
    in->has_time = in->has_gpu = false;
    return in->json ? read_json_line(in, line) : read_table_line(in, line);
}

static int read_lines(struct reading *in, FILE *file)
{
    size_t room = 0;
    char *line = NULL;
    ssize_t n;
    int r = 0;

    while (r == 0 && (n = getline(&line, &room, file)) >= 0) {
        in->number++;
        if (strlen(line) != (size_t)n)
            r = refuse(in, (int)strlen(line) + 1, NULL, "is not text");
        else
            r = read_line(in, line);
    }
    if (r == 0 && ferror(file))
        r = why_set(in->why, EIO, "%s: %s", in->r->source, strerror(EIO));
    free(line);
    return r;
}

static int by_time(const void *a, const void *b)
{
    const struct recorded_line *x = a, *y = b;

    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->number - y->number;
}

static int read_all(struct reading *in, FILE *file)
{
    char *fields = in->options->fields ? strdup(in->options->fields) : NULL;
    int r = 0;

    if (fields)
        r = take_heading(in, fields);
    free(fields);
    if (r == 0)
        r = read_lines(in, file);
    if (r == 0 && !in->r->line_count)
        r = why_set(in->why, EINVAL, "%s: there is no line with values", in->r->source);
    if (r < 0)
        return r;
    qsort(in->r->lines, in->r->line_count, sizeof(*in->r->lines), by_time);
    for (size_t i = in->r->line_count; i-- > 0;)
        in->r->lines[i].time_ns -= in->r->lines[0].time_ns;
    return 0;
}

int recording_read(struct recording *r, FILE *file, const char *source,
                   const struct recording_options *options, struct why *why)
{
    struct reading in = { .r = r, .options = options, .why = why };
    int result;

    *r = (struct recording){ .source = strdup(source) };
    result = r->source ? read_all(&in, file) : -ENOMEM;
    free(in.columns);
    free(in.heading);
    free(in.last);
    free(in.last_ns);
    if (result < 0)
        recording_release(r);
    return result;
}

void recording_release(struct recording *r)
{
    free(r->source);
    free(r->gpus);
    free(r->lines);
    free(r->values);
    text_release(&r->passed_over);
    *r = (struct recording){ 0 };
}
