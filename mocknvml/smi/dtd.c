/*
 * Dtd: what `--dtd` prints: which elements the XML has, in which order, and which of them may be missing or repeated.
 *
 * Nothing is listed here. The declarations are read off the XML of specimens (specimen.c), which the same code
 * draws that draws the XML of GPUs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/smi.h"

enum { NONE = -1, DEPTH_MAX = 16 };

/* A word of the XML, which is kept for as long as the declarations are. */
struct word {
    const char *at;
    int length;
};

struct element {
    struct word name, attribute; /* an attribute of no length: none */
    bool has_text;
    bool is_mixed_up; /* its children have no order */
    bool was_closed;
    int first, last; /* edges: the first of all, and the last one in what is being read */
};

/* A child of an element; an element's edges are a list in the order of the XML. */
struct edge {
    int child, next;
    int now, least, most; /* in one of the parents */
};

struct dtd {
    struct element *elements;
    struct edge *edges;
    int element_count, edge_count;
    int open[DEPTH_MAX], depth;
};

/* --- reading -------------------------------------------------------------------------------------- */

static bool is_word(const struct word *one, const struct word *other)
{
    return one->length == other->length && !memcmp(one->at, other->at, (size_t)one->length);
}

static int element_named(struct dtd *dtd, struct word name)
{
    for (int i = 0; i < dtd->element_count; i++)
        if (is_word(&dtd->elements[i].name, &name))
            return i;
    dtd->elements[dtd->element_count] = (struct element){ .name = name,
                                                          .first = NONE,
                                                          .last = NONE };
    return dtd->element_count++;
}

static int edge_from(const struct dtd *dtd, int edge, int child)
{
    while (edge != NONE && dtd->edges[edge].child != child)
        edge = dtd->edges[edge].next;
    return edge;
}

/* A child that was not seen before goes behind the one that it came after. */
static int insert_edge(struct dtd *dtd, struct element *parent, int child)
{
    int *link = parent->last == NONE ? &parent->first : &dtd->edges[parent->last].next;

    dtd->edges[dtd->edge_count] = (struct edge){ .child = child, .next = *link };
    *link = dtd->edge_count;
    return dtd->edge_count++;
}

static void count_child(struct dtd *dtd, struct element *parent, int child)
{
    int edge = edge_from(dtd, parent->first, child);

    if (edge == NONE)
        edge = insert_edge(dtd, parent, child);
    else if (parent->last != NONE && edge_from(dtd, parent->last, child) == NONE)
        parent->is_mixed_up = true;
    dtd->edges[edge].now++;
    parent->last = edge;
}

static void open_element(struct dtd *dtd, struct word name, struct word attribute)
{
    int element = element_named(dtd, name);

    if (attribute.length)
        dtd->elements[element].attribute = attribute;
    if (dtd->depth > 0)
        count_child(dtd, &dtd->elements[dtd->open[dtd->depth - 1]], element);
    if (dtd->depth < DEPTH_MAX)
        dtd->open[dtd->depth++] = element;
}

static void close_element(struct dtd *dtd)
{
    struct element *element = &dtd->elements[dtd->open[--dtd->depth]];

    for (int i = element->first; i != NONE; i = dtd->edges[i].next) {
        struct edge *edge = &dtd->edges[i];

        edge->least = !element->was_closed || edge->now < edge->least ? edge->now : edge->least;
        edge->most = edge->now > edge->most ? edge->now : edge->most;
        edge->now = 0;
    }
    element->last = NONE;
    element->was_closed = true;
}

/* From behind a '<' to behind its '>'. */
static const char *read_tag(struct dtd *dtd, const char *at)
{
    const char *end = at + strcspn(at, ">");
    struct word name = { at, (int)strcspn(at, " >") }, attribute = { "", 0 };

    if (*at == '/' && dtd->depth > 0)
        close_element(dtd);
    else if (isalpha((unsigned char)*at)) {
        if (at[name.length] == ' ')
            attribute = (struct word){ at + name.length + 1,
                                       (int)strcspn(at + name.length + 1, "=>") };
        open_element(dtd, name, attribute);
    }
    return *end ? end + 1 : end;
}

static void read_xml(struct dtd *dtd, const char *xml)
{
    while (*xml) {
        if (*xml == '<') {
            xml = read_tag(dtd, xml + 1);
            continue;
        }
        if (!isspace((unsigned char)*xml) && dtd->depth > 0)
            dtd->elements[dtd->open[dtd->depth - 1]].has_text = true;
        xml++;
    }
}

/* --- printing ------------------------------------------------------------------------------------- */

/* A child in a list of children: a new line when this one is full. */
static void print_child(FILE *file, const struct dtd *dtd, const struct edge *edge,
                        const char *before, const char *after, int *column)
{
    enum { LEFT = 33, RIGHT = 95 };
    const struct word *name = &dtd->elements[edge->child].name;
    int width = (int)strlen(before) + name->length + (int)strlen(after);

    if (*before && *column + width > RIGHT) {
        fprintf(file, ",\n%*s", LEFT, "");
        before = "";
        *column = LEFT;
    }
    *column += fprintf(file, "%s%.*s%s", before, name->length, name->at, after);
}

/* a?, b, c*: as they come. */
static void print_sequence(FILE *file, const struct dtd *dtd, const struct element *element,
                           int column)
{
    const char *before = "";

    fputc('(', file);
    for (int i = element->first; i != NONE; i = dtd->edges[i].next) {
        const struct edge *edge = &dtd->edges[i];

        print_child(file, dtd, edge, before,
                    edge->most > 1    ? "*"
                    : edge->least < 1 ? "?"
                                      : "",
                    &column);
        before = ", ";
    }
    fputs(")>\n", file);
}

/* (#PCDATA | a | b)*: what has a text or children instead of it. */
static void print_choice(FILE *file, const struct dtd *dtd, const struct element *element)
{
    const char *before = element->has_text ? " | " : "";

    fputs(element->has_text ? "(#PCDATA" : "(", file);
    for (int i = element->first; i != NONE; i = dtd->edges[i].next) {
        const struct word *name = &dtd->elements[dtd->edges[i].child].name;

        fprintf(file, "%s%.*s", before, name->length, name->at);
        before = " | ";
    }
    fputs(")*>\n", file);
}

static void print_element(FILE *file, const struct dtd *dtd, const struct element *element)
{
    int column = fprintf(file, "<!ELEMENT %-21.*s ", element->name.length, element->name.at);

    if (element->first == NONE)
        fputs("(#PCDATA)>\n", file);
    else if (element->has_text || element->is_mixed_up)
        print_choice(file, dtd, element);
    else
        print_sequence(file, dtd, element, column + 1);
    if (element->attribute.length)
        fprintf(file, "<!ATTLIST %-21.*s %.*s CDATA #REQUIRED>\n", element->name.length,
                element->name.at, element->attribute.length, element->attribute.at);
}

static int print_declarations(FILE *file, const char *xml)
{
    size_t tags = 1;
    struct dtd dtd = { 0 };

    for (const char *at = xml; (at = strchr(at, '<')); at++)
        tags++;
    dtd.elements = calloc(tags, sizeof(*dtd.elements));
    dtd.edges = calloc(tags, sizeof(*dtd.edges));
    if (dtd.elements && dtd.edges)
        read_xml(&dtd, xml);
    for (int i = 0; i < dtd.element_count; i++)
        print_element(file, &dtd, &dtd.elements[i]);
    free(dtd.elements);
    free(dtd.edges);
    return dtd.element_count ? 0 : exit_status(NVML_ERROR_MEMORY);
}

int dtd_print(FILE *file, bool units)
{
    char *xml = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&xml, &size);
    int status = exit_status(NVML_ERROR_MEMORY);

    if (memory) {
        specimens_print(memory, units);
        fprintf(file, "<!-- %s -->\n", xml_dtd(units));
        if (fclose(memory) == 0)
            status = print_declarations(file, xml);
    }
    free(xml);
    return status;
}
