#!/usr/bin/python3
"""A stand-in for the kubelet's pod-resources interface, on the official gRPC library.

    kubelet.py SOCKET STATE

Serves SOCKET and says "ready" on standard output. What it answers is in the file STATE, read at every call:

    {"pods": [{"namespace": "default", "name": "train-0",
               "containers": [{"name": "main", "devices": {"nvidia.com/gpu": ["0"]}}]}]}
    {"status": "UNAVAILABLE", "details": "starting"}    refuses
    {"raw": "ff00"}                                     these bytes instead of a message
    {"wait": 5, …}                                      answers after so many seconds

Descriptors are made here, field by field, with those that the kubelet sends and fakegpu-pods does not know.

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import json
import sys
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto
TYPES = {"string": FIELD.TYPE_STRING, "int64": FIELD.TYPE_INT64}

# Message: name, number, type, repeated.
MESSAGES = {
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": [("pod_resources", 1, "PodResources", True)],
    "PodResources": [("name", 1, "string", False), ("namespace", 2, "string", False),
                     ("containers", 3, "ContainerResources", True),
                     ("cpu_ids", 4, "int64", True)],
    "ContainerResources": [("name", 1, "string", False), ("devices", 2, "ContainerDevices", True),
                           ("cpu_ids", 3, "int64", True)],
    "ContainerDevices": [("resource_name", 1, "string", False), ("device_ids", 2, "string", True),
                         ("topology", 3, "TopologyInfo", False)],
    "TopologyInfo": [("nodes", 1, "NUMANode", True)],
    "NUMANode": [("ID", 1, "int64", False)],
}


def message_classes():
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            f = message.field.add(name=field, number=number,
                                  label=FIELD.LABEL_REPEATED if repeated else FIELD.LABEL_OPTIONAL)
            if kind in TYPES:
                f.type = TYPES[kind]
            else:
                f.type, f.type_name = FIELD.TYPE_MESSAGE, ".v1." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    # The name of this has changed between versions.
    make = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return {name: make(pool.FindMessageTypeByName("v1." + name)) for name in MESSAGES}


classes = message_classes()
socket, state_file = sys.argv[1:]


def response(state):
    out = classes["ListPodResourcesResponse"]()
    for pod in state.get("pods", []):
        p = out.pod_resources.add(name=pod["name"], namespace=pod["namespace"])
        for container in pod.get("containers", []):
            c = p.containers.add(name=container["name"], cpu_ids=[0, 1, 2])
            # As the kubelet does it: devices of different NUMA nodes come separately.
            for resource, ids in container.get("devices", {}).items():
                for i in ids:
                    d = c.devices.add(resource_name=resource, device_ids=[i])
                    d.topology.nodes.add(ID=1)
    return out.SerializeToString()


def list_pods(request, context):
    with open(state_file) as f:
        state = json.load(f)
    time.sleep(state.get("wait", 0))
    if "status" in state:
        context.abort(grpc.StatusCode[state["status"]], state.get("details", ""))
    if "raw" in state:
        return bytes.fromhex(state["raw"])
    return response(state)


server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
handler = grpc.unary_unary_rpc_method_handler(
    list_pods, request_deserializer=classes["ListPodResourcesRequest"].FromString,
    response_serializer=lambda message: message)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),))
if not server.add_insecure_port("unix:" + socket):
    sys.exit("cannot listen on " + socket)
server.start()
print("ready", flush=True)
server.wait_for_termination()
