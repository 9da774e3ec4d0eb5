/*
 * OTLP: a set of families as a request of OpenTelemetry's protocol. See otlp.h.
 *
 * The messages are built in an arena and packed at once. Samples that share their labels share the
 * attributes: that is most of a request.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exporter/otlp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/otlp.pb-c.h"
#include "sim/arena.h"

/* One request under construction. Whatever cannot be allocated is NULL, and `failed`. */
struct building {
    struct arena arena;
    const struct otlp_frame *frame;
    const struct label_set *labels; /* of the attributes below */
    Otlp__KeyValue **attributes;
    bool failed;
};

static void *take(struct building *b, size_t size)
{
    void *memory = b->failed ? NULL : arena_alloc(&b->arena, size);

    b->failed |= !memory;
    return memory;
}

/* An initialised message of a type, or NULL. */
#define TAKE(b, type, INIT) ((type *)put(take(b, sizeof(type)), &(type)INIT, sizeof(type)))

static void *put(void *memory, const void *initial, size_t size)
{
    return memory ? memcpy(memory, initial, size) : NULL;
}

static Otlp__KeyValue *make_attribute(struct building *b, const struct label *label)
{
    Otlp__KeyValue *pair = TAKE(b, Otlp__KeyValue, OTLP__KEY_VALUE__INIT);
    Otlp__AnyValue *value = TAKE(b, Otlp__AnyValue, OTLP__ANY_VALUE__INIT);

    if (b->failed)
        return NULL;
    value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
    value->string_value = (char *)label->value;
    pair->key = (char *)label->name;
    pair->value = value;
    return pair;
}

static Otlp__KeyValue **make_attributes(struct building *b, const struct label *labels,
                                        size_t count)
{
    Otlp__KeyValue **list = take(b, (count + 1) * sizeof(list[0]));

    for (size_t i = 0; list && i < count; i++)
        list[i] = make_attribute(b, &labels[i]);
    return list;
}

static Otlp__KeyValue **attributes_of(struct building *b, const struct label_set *labels)
{
    if (labels != b->labels) {
        b->attributes = make_attributes(b, labels->items, labels->count);
        b->labels = labels;
    }
    return b->attributes;
}

static void set_value(Otlp__Point *point, const struct sample *s)
{
    if (s->kind == SAMPLE_INTEGER) {
        point->value_case = OTLP__POINT__VALUE_AS_INT;
        point->as_int = s->integer;
    } else if (isnan(s->real)) {
        point->flags = OTLP__POINT_FLAGS__NO_RECORDED_VALUE;
    } else {
        point->value_case = OTLP__POINT__VALUE_AS_DOUBLE;
        point->as_double = s->real;
    }
}

static Otlp__Point *make_point(struct building *b, const struct sample *s, bool sum)
{
    Otlp__Point *point = TAKE(b, Otlp__Point, OTLP__POINT__INIT);

    if (!point)
        return NULL;
    point->time_unix_nano = b->frame->now_ns;
    point->start_time_unix_nano = sum ? b->frame->start_ns : 0;
    point->n_attributes = s->labels->count;
    point->attributes = attributes_of(b, s->labels);
    set_value(point, s);
    return point;
}

static Otlp__Point **make_points(struct building *b, const struct family *f, bool sum)
{
    Otlp__Point **points = take(b, f->count * sizeof(points[0]));

    for (size_t i = 0; points && i < f->count; i++)
        points[i] = make_point(b, &f->samples[i], sum);
    return points;
}

static void make_sum(struct building *b, Otlp__Metric *metric, const struct family *f)
{
    Otlp__Sum *sum = TAKE(b, Otlp__Sum, OTLP__SUM__INIT);

    if (!sum)
        return;
    sum->is_monotonic = true;
    sum->aggregation_temporality = OTLP__TEMPORALITY__CUMULATIVE;
    sum->n_data_points = f->count;
    sum->data_points = make_points(b, f, true);
    metric->data_case = OTLP__METRIC__DATA_SUM;
    metric->sum = sum;
}

static void make_gauge(struct building *b, Otlp__Metric *metric, const struct family *f)
{
    Otlp__Gauge *gauge = TAKE(b, Otlp__Gauge, OTLP__GAUGE__INIT);

    if (!gauge)
        return;
    gauge->n_data_points = f->count;
    gauge->data_points = make_points(b, f, false);
    metric->data_case = OTLP__METRIC__DATA_GAUGE;
    metric->gauge = gauge;
}

static Otlp__Metric *make_metric(struct building *b, const struct family *f)
{
    Otlp__Metric *metric = TAKE(b, Otlp__Metric, OTLP__METRIC__INIT);

    if (!metric)
        return NULL;
    metric->name = (char *)f->name;
    metric->description = (char *)f->help;
    if (f->type == FAMILY_COUNTER)
        make_sum(b, metric, f);
    else
        make_gauge(b, metric, f);
    return metric;
}

static Otlp__Metric **make_metrics(struct building *b, const struct family_set *set)
{
    Otlp__Metric **metrics = take(b, (set->count + 1) * sizeof(metrics[0]));

    for (size_t i = 0; metrics && i < set->count; i++)
        metrics[i] = make_metric(b, &set->families[i]);
    return metrics;
}

static void pack(struct text *out, const Otlp__ExportRequest *request)
{
    size_t size = otlp__export_request__get_packed_size(request);
    uint8_t *bytes = malloc(size);

    if (bytes)
        text_addn(out, (char *)bytes, otlp__export_request__pack(request, bytes));
    else
        out->failed = true;
    free(bytes);
}

void otlp_encode(struct text *out, const struct family_set *set, const struct otlp_frame *frame)
{
    struct building b = { .frame = frame };
    Otlp__Scope scope = OTLP__SCOPE__INIT;
    Otlp__Resource resource = OTLP__RESOURCE__INIT;
    Otlp__ScopeMetrics scoped = OTLP__SCOPE_METRICS__INIT;
    Otlp__ResourceMetrics metrics = OTLP__RESOURCE_METRICS__INIT;
    Otlp__ExportRequest request = OTLP__EXPORT_REQUEST__INIT;

    scope.name = (char *)"fakegpu-exporter";
    scope.version = (char *)FAKEGPUFS_VERSION;
    resource.n_attributes = frame->attribute_count;
    resource.attributes = make_attributes(&b, frame->attributes, frame->attribute_count);
    scoped.scope = &scope;
    scoped.n_metrics = set->count;
    scoped.metrics = make_metrics(&b, set);
    metrics.resource = &resource;
    metrics.n_scope_metrics = 1;
    metrics.scope_metrics = (Otlp__ScopeMetrics *[]){ &scoped };
    request.n_resource_metrics = 1;
    request.resource_metrics = (Otlp__ResourceMetrics *[]){ &metrics };
    if (b.failed)
        out->failed = true;
    else
        pack(out, &request);
    arena_release(&b.arena);
}

int64_t otlp_rejected(const void *body, size_t length, struct text *said)
{
    Otlp__ExportResponse *answer = otlp__export_response__unpack(NULL, length, body);
    int64_t rejected = 0;

    if (answer && answer->partial_success) {
        rejected = answer->partial_success->rejected_data_points;
        text_add(said, answer->partial_success->error_message);
    }
    if (answer)
        otlp__export_response__free_unpacked(answer, NULL);
    return rejected;
}
