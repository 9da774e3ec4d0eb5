/*
 * Options of fakegpu-labels. See options.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/labels/options.h"

#include <stdlib.h>
#include <string.h>

#include "sim/unit.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"
#define SCHEME "https://"

enum { NODE_NAME_MAX = 253 /* as for anything in the DNS */ };

static const char help[] =
    "usage: fakegpu-labels [OPTION …]\n\n"
    "Keeps the labels of a Kubernetes node those of the mount's file k8s/labels, with nvidia.com/gpu=present. Labels\n"
    "that it did not set it does not remove.\n\n" HELP_ROOT
    "      --node NAME         which node; default: NODE_NAME of the environment\n"
    "      --server URL        the API server; default: the one that a pod finds in its environment\n"
    "      --token-file FILE   who we are to it; default:\n"
    "                          " ACCOUNT "token\n"
    "      --ca-file FILE      who must have certified it; default:\n"
    "                          " ACCOUNT "ca.crt\n"
    "  -i, --interval TIME     how often to look at the mount: 100ms to 1h (5s)\n"
    "      --resync TIME       how often to look at the node, too: 100ms to 1h (5m)\n" HELP_ONCE
    "      --check             look once and do nothing; exit code 1 unless the node has the labels\n"
    "      --remove            take our labels off the node; needs no mount\n"
    "      --on-exit WHAT      labels at SIGTERM: keep or remove (keep)\n" HELP_LAST "\nexamples:\n"
    "  fakegpu-labels --dry-run\n"
    "  fakegpu-labels --node worker-1 --server https://192.0.2.1:6443 --token-file token --ca-file ca.crt --once\n";

/* A name can stand in a path as it is. */
static int check_node(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

    if (!name || !*name)
        return usage("--node is not given, and NODE_NAME is not in the environment");
    if (strlen(name) > NODE_NAME_MAX || name[strspn(name, allowed)] || strspn(name, "-."))
        return usage("--node: '%s' is not a node's name; allowed: a-z, 0-9, '-' and '.'", name);
    return -1;
}

/* A token is sent only where nobody else reads it; a password in an address would be in every sentence. */
static int check_server(const struct text *url)
{
    const char *text = text_str(url), *host = text + strlen(SCHEME);

    if (url->failed || strncmp(text, SCHEME, strlen(SCHEME)) || !*host ||
        host[strcspn(host, "/@?# \t\r\n")])
        return usage("--server: '%s' is not an API server; allowed: " SCHEME "HOST[:PORT]", text);
    return -1;
}

static void set_server(struct text *url, const char *text)
{
    size_t n = strlen(text);

    while (n && text[n - 1] == '/')
        n--;
    text_cut(url, 0);
    text_addn(url, text, n);
}

/* Where a pod finds it. */
static int find_server(struct text *url)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");

    if (url->length)
        return -1;
    if (!host || !*host)
        return usage(
            "--server is not given, and KUBERNETES_SERVICE_HOST is not in the environment");
    text_addf(url, strchr(host, ':') ? SCHEME "[%s]:%s" : SCHEME "%s:%s", host,
              port && *port ? port : "443");
    return -1;
}

static void set_defaults(struct options *o)
{
    *o = (struct options){
        .node = getenv("NODE_NAME"),
        .token_file = ACCOUNT "token",
        .ca_file = ACCOUNT "ca.crt",
        .resync_ns = 300 * NS_PER_S,
    };
    common_defaults(&o->common, 5 * NS_PER_S);
}

static int check_all(struct options *o)
{
    int r = check_node(o->node);

    if (r < 0)
        r = find_server(&o->server);
    if (r < 0)
        r = check_server(&o->server);
    if (r < 0 && o->check && o->remove)
        r = usage("--check and --remove are not for the same time");
    o->common.once |= o->check || o->remove;
    return r;
}

int options_parse(struct options *o, int argc, char **argv)
{
    enum { NODE = OPTION_OWN, SERVER, TOKEN_FILE, CA_FILE, RESYNC, CHECK, REMOVE };
    static const struct option longs[] = {
        COMMON_OPTIONS,
        { "node", required_argument, NULL, NODE },
        { "server", required_argument, NULL, SERVER },
        { "token-file", required_argument, NULL, TOKEN_FILE },
        { "ca-file", required_argument, NULL, CA_FILE },
        { "resync", required_argument, NULL, RESYNC },
        { "check", no_argument, NULL, CHECK },
        { "remove", no_argument, NULL, REMOVE },
        { 0 },
    };
    int r = -1, c;

    set_defaults(o);
    while (r < 0 && (c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        switch (c) {
        case NODE:
            o->node = optarg;
            break;
        case SERVER:
            set_server(&o->server, optarg);
            r = check_server(&o->server);
            break;
        case TOKEN_FILE:
            o->token_file = optarg;
            break;
        case CA_FILE:
            o->ca_file = optarg;
            break;
        case RESYNC:
            r = option_time("resync", optarg, &o->resync_ns);
            break;
        case CHECK:
            o->check = true;
            break;
        case REMOVE:
            o->remove = true;
            break;
        default:
            r = common_option(&o->common, c, help);
        }
    }
    if (r < 0)
        r = common_rest(argc, argv);
    return r < 0 ? check_all(o) : r;
}

void options_release(struct options *o)
{
    text_release(&o->server);
}
