#!/usr/bin/python3
"""A stand-in for an API server that knows pods, for those who look up whose metrics they serve.

    pods_api.py DIR    serves on 127.0.0.1, without TLS, and says its port on standard output

DIR has `pods`, a line for each: namespace, name, labels as `key=value,key=value`; read at every request. It answers to

    discovery                   /api, /apis, /api/v1: there are namespaces and pods, and nothing else
    lists of pods               of a namespace, with a label selector of equalities
    TokenReview                 who has the token of the file `token` is the autoscaler, nobody else is anybody
    SubjectAccessReview         the autoscaler may do anything with custom metrics, and see which there are; nobody else may

SPDX-License-Identifier: Apache-2.0
"""
import http.server
import json
import re
import sys
import urllib.parse

AUTOSCALER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
RESOURCES = [
    {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace", "verbs": ["get", "list"]},
    {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"]},
]


def selected(labels, selector):
    """Whether labels are what a selector of equalities wants."""
    return all(labels.get(key) == value for key, value in
               (re.fullmatch(r"([^=!,()]+)==?([^=!,()]*)", part).groups() for part in selector.split(",") if part))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = ""

    def log_message(self, *_):
        pass

    def answer(self, body, status=200):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self):
        self.answer({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
                     "message": self.path + " is not known here"}, 404)

    def pods(self, namespace, selector):
        with open(self.folder + "/pods") as f:
            for line in f:
                of, name, labels = line.split()
                labels = dict(label.split("=", 1) for label in labels.split(","))
                if of == namespace and selected(labels, selector):
                    yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": of, "name": name, "labels": labels}}

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        pods = re.fullmatch("/api/v1/namespaces/([^/]+)/pods", url.path)
        if url.path == "/api":
            self.answer({"kind": "APIVersions", "versions": ["v1"]})
        elif url.path == "/apis":
            self.answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
        elif url.path == "/api/v1":
            self.answer({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": RESOURCES})
        elif pods:
            selector = urllib.parse.parse_qs(url.query).get("labelSelector", [""])[0]
            self.answer({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
                         "items": list(self.pods(pods[1], selector))})
        else:
            self.refuse()

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path, spec = urllib.parse.urlsplit(self.path).path, review["spec"]
        if path == "/apis/authentication.k8s.io/v1/tokenreviews":
            with open(self.folder + "/token") as f:
                known = spec["token"] == f.read().strip()
            review["status"] = {"authenticated": known, **({"user": {"username": AUTOSCALER}} if known else {})}
        elif path == "/apis/authorization.k8s.io/v1/subjectaccessreviews":
            metrics, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes", {}).get("path", "")
            allowed = metrics["group"] == "custom.metrics.k8s.io" if metrics else path.startswith("/apis/")
            review["status"] = {"allowed": allowed and spec.get("user") == AUTOSCALER}
        else:
            self.refuse()
            return
        self.answer(review, 201)


Handler.folder = sys.argv[1]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
