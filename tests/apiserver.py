#!/usr/bin/python3
"""A stand-in for the API server of a cluster with one node, over TLS.

    apiserver.py serve DIR PORT CERT KEY    serves on 127.0.0.1 and says its port on standard output; PORT 0: any
    apiserver.py label DIR KEY=VALUE KEY-   somebody sets and removes labels of the node
    apiserver.py labels DIR                 those that it has, a line each, in order

DIR has the files `token`, the only one that is taken, and `node.json`, the node. Every request is a line of `requests`:
method, type of its body, body; and of `times`, in seconds. What else is to happen is in `behave`, read at every request:

    {"status": 403, "message": "no"}    refuses with a Status
    {"raw": "<html>", "status": 200}    these bytes instead of an object
    {"close": true}                     closes the connection
    {"wait": 5}                         answers after so many seconds
    {"meanwhile": 2}                    somebody changes the node between so many next reads and patches of it
    {"verb": "PATCH", …}                all this only for requests of this method

A patch is a merge patch as RFC 7386 has it; one with another resourceVersion than the node's is a conflict, and labels that
Kubernetes would not take are refused.

SPDX-License-Identifier: Apache-2.0
"""
import fcntl
import http.server
import json
import os
import re
import ssl
import sys
import threading
import time

NAME = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?")
VALUE = re.compile(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?")


class Store:
    """The node in its file, for the server and for who changes it from outside."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.lock = open(self.folder + "/lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        with open(self.folder + "/node.json") as f:
            self.node = json.load(f)
        self.before = json.dumps(self.node)
        return self

    def __exit__(self, *_):
        if json.dumps(self.node) != self.before:
            version = self.node["metadata"]
            version["resourceVersion"] = str(int(version["resourceVersion"]) + 1)
            with open(self.folder + "/node.json.new", "w") as f:
                json.dump(self.node, f)
            os.rename(self.folder + "/node.json.new", self.folder + "/node.json")
        self.lock.close()


def merged(target, patch):
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merged(target.get(key), value)
    return target


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = ""

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, message):
        self.answer(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status})

    def note(self, body):
        with open(self.folder + "/requests", "a") as f:
            print(self.command, self.headers.get("Content-Type", "-"), body or "-", file=f)
        with open(self.folder + "/times", "a") as f:
            print(time.monotonic(), file=f)

    def behaviour(self):
        with open(self.folder + "/behave") as f:
            behave = json.load(f)
        return behave if behave.get("verb", self.command) == self.command else {}

    def authorized(self):
        with open(self.folder + "/token") as f:
            return self.headers.get("Authorization") == "Bearer " + f.read().strip()

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        behave = self.behaviour()
        self.note(body)
        if "wait" in behave:
            time.sleep(behave["wait"])
        if behave.get("close"):
            self.close_connection = True
            return
        if not self.authorized():
            self.refuse(401, "Unauthorized")
        elif "raw" in behave:
            self.answer(behave.get("status", 200), behave["raw"])
        elif "status" in behave:
            self.refuse(behave["status"], behave["message"].replace("TOKEN", self.headers["Authorization"].split()[1]))
        else:
            with Store(self.folder) as store:
                self.do(store, body)

    def do(self, store, body):
        name = store.node["metadata"]["name"]
        if self.path != "/api/v1/nodes/" + name:
            self.refuse(404, 'nodes "%s" not found' % self.path.split("/")[-1])
        elif self.command == "GET":
            partial = "as=PartialObjectMetadata" in self.headers.get("Accept", "")
            self.answer(200, {"kind": "PartialObjectMetadata", "metadata": store.node["metadata"]} if partial else store.node)
            self.disturb(store)
        elif self.headers["Content-Type"] != "application/merge-patch+json":
            self.refuse(415, "the body of the request was in an unknown format")
        else:
            self.patch(store, json.loads(body))

    def disturb(self, store):
        behave = self.behaviour()
        if behave.get("meanwhile", 0) > 0:
            behave["meanwhile"] -= 1
            with open(self.folder + "/behave", "w") as f:
                json.dump(behave, f)
            labels = store.node["metadata"].setdefault("labels", {})
            labels["disturbed"] = str(int(labels.get("disturbed", 0)) + 1)

    def patch(self, store, patch):
        metadata = store.node["metadata"]
        version = patch.get("metadata", {}).pop("resourceVersion", None)
        if version not in (None, metadata["resourceVersion"]):
            self.refuse(409, 'Operation cannot be fulfilled on nodes "%s": the object has been modified' % metadata["name"])
            return
        node = merged(store.node, patch)
        for key, value in node["metadata"].get("labels", {}).items():
            if not NAME.fullmatch(key) or not VALUE.fullmatch(value):
                self.refuse(422, 'Node "%s" is invalid: metadata.labels: Invalid value: "%s"' % (metadata["name"], value))
                return
        store.node = node
        self.answer(200, node)

    do_GET = do_PATCH = handle_request


def serve(folder, port, cert, key):
    Handler.folder = folder
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    # The handshake is for the thread that answers: who hangs in it is alone.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda *_: None
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Event().wait()


def label(folder, *changes):
    with Store(folder) as store:
        labels = store.node["metadata"].setdefault("labels", {})
        for change in changes:
            if change.endswith("-"):
                labels.pop(change[:-1], None)
            else:
                labels.update([change.split("=", 1)])


def show(folder):
    with Store(folder) as store:
        print("\n".join(sorted("%s=%s" % item for item in store.node["metadata"].get("labels", {}).items())))


{"serve": serve, "label": label, "labels": show}[sys.argv[1]](*sys.argv[2:])
