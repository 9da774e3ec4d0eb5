"""Reads the manifests of k8s/ for tests/manifests.t: manifests.py CHECK [ARGUMENT...], from the top of the tree.

    faults                   what does not fit together, a line each
    text NAME KEY            an entry of a ConfigMap
    command FILE KIND        the command of an object's only container, a word in a line
    probes DEPLOYMENT        the commands of all probes of a Deployment of k8s/kwok, a line each
    probe WORKLOAD CONTAINER PROBE   a probe's command, a word in a line, or its path
    container WORKLOAD CONTAINER NODE   a container as container_write (tests/container.sh) takes it; NODE is the directory
                             that stands for the node's root, NODE/volumes has what is not of the node
    args WORKLOAD CONTAINER  its arguments, a word in a line
    verbs RESOURCE           what may be done with it, in order
    scrape TARGET NODE       a Prometheus' configuration for an exporter on that node, as the operator makes it of the ServiceMonitor

Kubernetes' own types are a matter of tests/clients/manifests.t.

SPDX-License-Identifier: Apache-2.0
"""
import glob
import json
import re
import sys

import yaml

WORKLOADS = ("DaemonSet", "Deployment", "Job", "CronJob")
# Who may what: everything that is not here is a fault.
PRIVILEGED = {("fakegpufs", "driver"), ("kwok-gpus", "driver-a"), ("kwok-gpus", "driver-b")}
ROOT = PRIVILEGED | {("fakegpufs", "pods"), ("gpu-off-the-bus", "scenario"), ("nvidia-device-plugin", "plugin"),
                     ("gpu-feature-discovery", "discovery")}
# Of a simulated node: nothing of it runs.
SIMULATED = {"kwok-train"}
TOKENS = {"gpu-labeller"}
HOST_PATHS = {"/run/fakegpufs", "/run/fakegpufs-kwok", "/var/lib/kubelet/pod-resources", "/var/lib/kubelet/device-plugins",
              "/etc/kubernetes/node-feature-discovery/features.d", "/var/run/cdi"}
VERBS = {"nodes": ["get", "patch"]}
# Those that `make image` makes, and NVIDIA's.
IMAGES = {line.split()[1] for line in open("k8s/image/images") if line.startswith("image ")} | {"nvidia/k8s-device-plugin"}


def load(pattern):
    return [(name, thing) for name in sorted(glob.glob(pattern)) for thing in yaml.safe_load_all(open(name))
            if thing and "apiVersion" in thing and thing["kind"] not in ("Kustomization", "Component")]


def pod_of(thing):
    spec = thing["spec"]["jobTemplate"]["spec"] if thing["kind"] == "CronJob" else thing["spec"]
    return spec["template"]


def container_faults(name, pod, container):
    who = (name, container["name"])
    own = container.get("securityContext", {})
    user = {**pod.get("securityContext", {}), **own}
    if own.get("privileged", False) != (who in PRIVILEGED):
        yield "is privileged, or is not and should be"
    if not own.get("readOnlyRootFilesystem"):
        yield "can write to its root"
    if who not in PRIVILEGED and (own.get("allowPrivilegeEscalation") is not False
                                  or own.get("capabilities") != {"drop": ["ALL"]}):
        yield "keeps capabilities"
    if who not in PRIVILEGED and user.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "may make any system call"
    if who not in ROOT and not (user.get("runAsNonRoot") and user.get("runAsUser") == 65532):
        yield "is root"
    if not {"cpu", "memory"} <= container["resources"]["requests"].keys() or "memory" not in container["resources"]["limits"]:
        yield "has no requests or no limit"
    if not re.fullmatch(r"[\w./-]+:v?[\d.]+", container["image"]):
        yield f"has an image without a version: {container['image']}"
    if container["image"].split(":")[0] not in IMAGES:
        yield f"has an image of others: {container['image']}"
    # By that nvidia-smi, too, finds the GPUs when somebody runs it in there. Who reads several mounts has no such one.
    args = container.get("args", [])
    root = [variable["value"] for variable in container.get("env", []) if variable["name"] == "FAKEGPUFS_ROOT"]
    where = args[-1] if who in PRIVILEGED else "/run/fakegpufs/driver"
    if container["image"].startswith("fakegpu") and "--roots" not in args and root != [where]:
        yield "is not told where the mount is"
    volumes = {volume["name"] for volume in pod["volumes"]}
    for mount in container["volumeMounts"]:
        if mount["name"] not in volumes:
            yield f"mounts {mount['name']}, which is no volume"
        want = "Bidirectional" if who in PRIVILEGED else "HostToContainer"
        if mount["name"] == "gpus" and (mount["mountPath"], mount.get("mountPropagation")) != ("/run/fakegpufs", want):
            yield "does not get the mount"
    ports = {port["name"] for port in container.get("ports", [])}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        port = container.get(probe, {}).get("httpGet", {}).get("port")
        if port and port not in ports:
            yield f"{probe} asks a port that there is not"


def pod_faults(thing, maps):
    name, template = thing["metadata"]["name"], pod_of(thing)
    pod = template["spec"]
    if (pod.get("automountServiceAccountToken") is not False) != (name in TOKENS):
        yield "has a token, or has none and should"
    if pod.get("hostNetwork") or pod.get("hostPID") or pod.get("hostIPC"):
        yield "is in namespaces of the node"
    for volume in pod["volumes"]:
        if "hostPath" in volume and volume["hostPath"]["path"] not in HOST_PATHS:
            yield f"has {volume['hostPath']['path']} of the node"
        if "configMap" in volume and volume["configMap"]["name"] not in maps:
            yield f"there is no ConfigMap {volume['configMap']['name']}"
    selector = thing["spec"].get("selector", {}).get("matchLabels", {})
    if not selector.items() <= template["metadata"]["labels"].items():
        yield "does not select its own pods"
    for container in pod["containers"]:
        if thing["kind"] == "DaemonSet" and "readinessProbe" not in container:
            yield f"{container['name']} has no probe"
        for fault in container_faults(name, pod, container):
            yield f"{container['name']} {fault}"


def everything():
    return load("k8s/base/*.yaml") + load("k8s/components/*/*.yaml") + load("k8s/examples/*.yaml")


def workload(name):
    return next(thing for _, thing in everything()
                if thing["kind"] in WORKLOADS and thing["metadata"]["name"] == name)


def container_of(thing, name):
    return next(c for c in pod_of(thing)["spec"]["containers"] if c["name"] == name)


PROPAGATION = {None: "rprivate", "HostToContainer": "rslave", "Bidirectional": "rshared"}


def described(thing, name, node):
    """What a runtime is told of a container. What only a node knows, a field of the pod, is left out."""
    pod, container = pod_of(thing)["spec"], container_of(thing, name)
    user = {**pod.get("securityContext", {}), **container["securityContext"]}
    sources = {volume["name"]: volume.get("hostPath", {"path": "/volumes/" + volume["name"]})["path"]
               for volume in pod["volumes"]}
    return {
        "args": container["command"] + container.get("args", []),
        "uid": user.get("runAsUser", 0),
        "env": [f"{entry['name']}={entry['value']}" for entry in container.get("env", []) if "value" in entry],
        "mounts": [[node + sources[mount["name"]], mount["mountPath"], "rbind", PROPAGATION[mount.get("mountPropagation")],
                    "ro" if mount.get("readOnly") else "rw"] for mount in container["volumeMounts"]],
        "propagation": "rslave",
        "readonly": user.get("readOnlyRootFilesystem", False),
    }


def scrape(target, node):
    """The labels are those that the operator gives a target; then come the relabelings of the ServiceMonitor."""
    monitor = next(thing for _, thing in everything() if thing["kind"] == "ServiceMonitor")
    endpoint = monitor["spec"]["endpoints"][0]
    labels = {"__meta_kubernetes_pod_node_name": node, "namespace": monitor["metadata"]["namespace"], "job": "dcgm-exporter",
              "pod": "dcgm-exporter-x", "container": "exporter", "service": "dcgm-exporter", "endpoint": endpoint["port"]}
    relabelings = [{re.sub("(?=[A-Z])", "_", key).lower(): value for key, value in relabeling.items()}
                   for relabeling in endpoint["relabelings"]]
    return {"scrape_configs": [{"job_name": "operator", "scrape_interval": "1s", "honor_labels": endpoint["honorLabels"],
                                "static_configs": [{"targets": [target], "labels": labels}], "relabel_configs": relabelings}]}


def kwok_faults():
    """The fleet: both daemons have a configuration and a place below what the exporter serves, and Prometheus finds it."""
    things = {(thing["kind"], thing["metadata"]["name"]): thing for _, thing in load("k8s/kwok/*.yaml")}
    fleet, service = things["Deployment", "kwok-gpus"], things["Service", "kwok-gpus"]
    if things["Namespace", "gpu-monitoring"] != load("k8s/base/namespace.yaml")[0][1]:
        yield "k8s/kwok: the namespace is another than that of k8s/base"
    files = yaml.safe_load(open("k8s/kwok/kustomization.yaml"))["configMapGenerator"][0]["files"]
    containers = {container["name"]: container for container in pod_of(fleet)["spec"]["containers"]}
    roots = containers["exporter"]["args"][-1]
    for name in ("driver-a", "driver-b"):
        _, config, mount = containers[name]["args"]
        if config.split("/")[-1] not in files:
            yield f"{name}: there is no {config}"
        if mount.rpartition("/")[0] != roots:
            yield f"{name}: the exporter does not look at {mount}"
        for probe in ("startupProbe", "livenessProbe"):
            if containers[name][probe]["exec"]["command"][-1] != mount:
                yield f"{name}: the {probe} looks elsewhere"
    if fleet["spec"]["strategy"] != {"type": "Recreate"}:
        yield "kwok-gpus: two pods may mount on one place"
    if service["spec"]["selector"] != pod_of(fleet)["metadata"]["labels"]:
        yield "kwok-gpus: the Service does not lead to the exporter"
    url = f"http://kwok-gpus.gpu-monitoring.svc:{service['spec']['ports'][0]['port']}/nodes"
    scrape = yaml.safe_load(open("k8s/kwok/prometheus.yml"))["scrape_configs"][0]
    if [sd["url"] for sd in scrape["http_sd_configs"]] != [url] or \
            [sd["url"] for sd in things["ScrapeConfig", "kwok-gpus"]["spec"]["httpSDConfigs"]] != [url]:
        yield f"kwok-gpus: Prometheus does not ask {url}"


def faults():
    base = load("k8s/base/*.yaml") + load("k8s/components/*/*.yaml")
    things = everything() + load("k8s/kwok/*.yaml")
    maps = {thing["metadata"]["name"] for _, thing in things if thing["kind"] == "ConfigMap"}
    maps |= {entry["name"] for where in ("observability", "kwok")
             for entry in yaml.safe_load(open(f"k8s/{where}/kustomization.yaml"))["configMapGenerator"]}
    listed = yaml.safe_load(open("k8s/base/kustomization.yaml"))["resources"]
    for name, thing in things:
        where = f"{name}: {thing['kind']} {thing['metadata']['name']}"
        cluster = thing["kind"] in ("Namespace", "ClusterRole", "ClusterRoleBinding")
        if name.startswith("k8s/base") and name.split("/")[-1] not in listed:
            yield f"{where}: is not in the kustomization"
        if not cluster and not name.startswith("k8s/examples") and thing["metadata"]["name"] not in SIMULATED and thing["metadata"].get("namespace") != "gpu-monitoring":
            yield f"{where}: is in another namespace"
        if thing["kind"] in WORKLOADS and thing["metadata"]["name"] not in SIMULATED:
            yield from (f"{where}: {fault}" for fault in pod_faults(thing, maps))
        for rule in thing.get("rules", []):
            if {resource: rule["verbs"] for resource in rule["resources"]} != VERBS:
                yield f"{where}: may {rule['verbs']} {rule['resources']}"
    by_name = {(thing["kind"], thing["metadata"]["name"]): thing for _, thing in base}
    service, exporter = by_name["Service", "dcgm-exporter"], by_name["DaemonSet", "dcgm-exporter"]
    port = service["spec"]["ports"][0]
    if service["spec"]["selector"] != pod_of(exporter)["metadata"]["labels"] or port["port"] != 9400 \
            or service["metadata"]["annotations"] != {"prometheus.io/scrape": "true", "prometheus.io/port": "9400",
                                                      "prometheus.io/path": "/metrics"}:
        yield "the Service does not lead to the exporters"
    yield from kwok_faults()
    monitor = by_name["ServiceMonitor", "dcgm-exporter"]["spec"]
    if not monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items() \
            or monitor["endpoints"][0]["port"] != port["name"]:
        yield "the ServiceMonitor does not find the Service"


def main():
    what, *rest = sys.argv[1:]
    if what == "faults":
        print("\n".join(faults()), end="")
    elif what == "text":
        print(next(thing["data"][rest[1]] for _, thing in everything()
                   if (thing["kind"], thing["metadata"]["name"]) == ("ConfigMap", rest[0])), end="")
    elif what == "command":
        thing = next(thing for _, thing in load(rest[0]) if thing["kind"] == rest[1])
        print("\n".join(pod_of(thing)["spec"]["containers"][0]["command"]))
    elif what == "probe":
        probe = container_of(workload(rest[0]), rest[1])[rest[2]]
        print("\n".join(probe["exec"]["command"]) if "exec" in probe else probe["httpGet"]["path"])
    elif what == "container":
        print(json.dumps(described(workload(rest[0]), rest[1], rest[2])))
    elif what == "args":
        print("\n".join(container_of(workload(rest[0]), rest[1])["args"]))
    elif what == "scrape":
        print(json.dumps(scrape(*rest)))
    elif what == "verbs":
        rules = [rule for _, thing in load("k8s/base/*.yaml") for rule in thing.get("rules", []) if rest[0] in rule["resources"]]
        print(*sorted(verb for rule in rules for verb in rule["verbs"]))
    elif what == "probes":
        thing = next(thing for _, thing in load("k8s/kwok/*.yaml")
                     if thing["kind"] == "Deployment" and thing["metadata"]["name"] == rest[0])
        for container in pod_of(thing)["spec"]["containers"]:
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if "exec" in container.get(probe, {}):
                    print(*container[probe]["exec"]["command"])
    else:
        sys.exit(f"no check {what}")


main()
