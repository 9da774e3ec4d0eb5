"""The exporter's push to an OpenTelemetry receiver: what is in a request, and what happens when it is not taken.

    exporter_otlp.py EXPORTER MOUNT MESSAGES

MESSAGES is a directory with otlp_pb2.py, compiled from exporter/otlp.proto; that those are the protocol's
messages, the official receiver shows in tests/clients/. Prints a test line for each check and the plan.

SPDX-License-Identifier: Apache-2.0
"""
import gzip
import http.server
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

from tap import WAIT_S, done, ok, until

EXPORTER, MOUNT, MESSAGES = sys.argv[1:4]
sys.path.insert(0, MESSAGES)
import otlp_pb2  # noqa: E402


class Receiver:
    """Keeps what it is sent, and answers as `answers` says, one after the other; then 200."""

    def __init__(self, port=0, answers=()):
        self.requests = []  # (headers, body, when)
        self.answers = list(answers)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, dict(self.headers), body, time.monotonic()))
                status, headers, answer = receiver.answers.pop(0) if receiver.answers else (200, {}, b"")
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, n):
        """Waits for n requests; all there are."""
        return until(lambda: self.requests, lambda r: len(r) >= n)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Exporter:
    def __init__(self, endpoint, *options, **environment):
        self.log_path = os.path.join(MESSAGES, "exporter.log")
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(
                [EXPORTER, "--root", MOUNT, "--address", "127.0.0.1:0", "--otlp-endpoint", endpoint,
                 "--otlp-interval", "200ms", *options],
                stderr=log, env={**os.environ, **environment})

    def log(self):
        with open(self.log_path) as f:
            return f.read()

    def url(self):
        log = until(self.log, lambda text: "listening on" in text)
        return re.search(r"listening on (\S+)", log)[1]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)


def decode(body):
    return otlp_pb2.ExportRequest.FromString(body)


def points(request):
    """{(name, labels): value} of everything in it."""
    found = {}
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        for point in getattr(metric, metric.WhichOneof("data")).data_points:
            labels = tuple((a.key, a.value.string_value) for a in point.attributes)
            found[metric.name, labels] = getattr(point, point.WhichOneof("value"))
    return found


def scrape(url):
    found = {}
    for line in urllib.request.urlopen(url + "/metrics").read().decode().splitlines():
        match = re.fullmatch(r'(\w+)\{(.*)\} (\S+)', line)
        if match:
            found[match[1], tuple(re.findall(r'([\w.]+)="([^"]*)"', match[2]))] = float(match[3])
    return found


def check_content():
    receiver = Receiver()
    exporter = Exporter(f"http://127.0.0.1:{receiver.port}/", NODE_NAME="node-7",
                        OTEL_RESOURCE_ATTRIBUTES="deployment.environment=te%20st, team=gpu")
    path, headers, body, _ = receiver.take(2)[0]
    ok(path == "/v1/metrics", "requests go to the path of metrics", path)
    ok(headers["Content-Type"] == "application/x-protobuf", "as protobuf", headers)
    request = decode(body)
    sent, scraped = points(request), scrape(exporter.url())
    ok(sent == scraped and len(sent) >= 80, "with exactly what is scraped: names, labels, values",
       set(sent.items()) ^ set(scraped.items()))
    attributes = {a.key: a.value.string_value for a in request.resource_metrics[0].resource.attributes}
    ok(attributes == {"service.name": "fakegpu-exporter", "service.version": attributes.get("service.version"),
                      "host.name": "node-7", "k8s.node.name": "node-7",
                      "deployment.environment": "te st", "team": "gpu"}, "the resource says who", attributes)
    metrics = {m.name: m for m in request.resource_metrics[0].scope_metrics[0].metrics}
    energy, power = metrics["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"], metrics["DCGM_FI_DEV_POWER_USAGE"]
    ok(energy.sum.is_monotonic and energy.sum.aggregation_temporality == 2 and energy.description,
       "a counter is a cumulative sum", energy)
    ok(0 < energy.sum.data_points[0].start_time_unix_nano <= energy.sum.data_points[0].time_unix_nano,
       "that has begun before", energy.sum.data_points[0])
    ok(power.WhichOneof("data") == "gauge", "the others are gauges", power)
    age = time.time() - power.gauge.data_points[0].time_unix_nano / 1e9
    ok(0 <= age < 120, "of now", age)
    ok(exporter.stop() == 0, "it ends when told")
    receiver.close()


def check_failing():
    partial = otlp_pb2.ExportResponse(partial_success=otlp_pb2.PartialSuccess(
        rejected_data_points=3, error_message="too old")).SerializeToString()
    receiver = Receiver(answers=[(503, {}, b""), (429, {"Retry-After": "2"}, b""), (200, {}, b""),
                                 (400, {}, b""), (200, {}, partial)])
    exporter = Exporter(f"http://127.0.0.1:{receiver.port}/v1/metrics")
    requests = receiver.take(6)
    bodies = [r[2] for r in requests]
    ok(bodies[0] == bodies[1] == bodies[2], "what a busy receiver did not take is sent again")
    ok(requests[1][3] - requests[0][3] >= 0.4, "after a while", requests[1][3] - requests[0][3])
    ok(requests[2][3] - requests[1][3] >= 1.9, "or when it says so", requests[2][3] - requests[1][3])
    ok(bodies[3] not in bodies[:3] + bodies[4:], "what it refuses is not sent again")
    ok(all(r[0] == "/v1/metrics" for r in requests), "the path is not added twice", [r[0] for r in requests])
    log = until(exporter.log, lambda text: "too old" in text)
    ok("status 503; trying again" in log and "takes it again" in log, "the log says so", log)
    ok("refuses what is sent to it: status 400" in log, "and what is refused", log)
    ok("did not want 3 points: too old" in log, "and what it took only in part", log)
    exporter.stop()
    receiver.close()


def check_away():
    receiver = Receiver()
    port = receiver.port
    receiver.close()
    exporter = Exporter(f"http://me:hush@127.0.0.1:{port}", "--otlp-interval", "100ms",
                        "--otlp-headers", "x-token=s%C3%A9cret,x-other=1", "--otlp-compression", "gzip")
    log = until(exporter.log, lambda text: "trying again" in text)
    ok("trying again" in log, "a receiver that is not there is waited for", log)
    time.sleep(6)  # more than the queue holds
    ok(exporter.process.poll() is None and scrape(exporter.url()), "while others are served")
    receiver = Receiver(port)
    requests = receiver.take(34)
    lost = re.search(r"takes it again; (\d+) requests are lost",
                     until(exporter.log, lambda text: "takes it again" in text))
    ok(lost and int(lost[1]) > 0, "the queue is bounded, and what was lost is counted", exporter.log())
    body = gzip.decompress(requests[0][2])
    ok(requests[0][1]["Content-Encoding"] == "gzip" and points(decode(body)), "requests can be compressed")
    headers = requests[0][1]
    ok(headers.get("x-other") == "1" and headers.get("x-token", "").encode("latin-1") == "sécret".encode(),
       "headers are sent along", headers)
    ok(headers.get("Authorization", "").startswith("Basic "), "and who it is", headers)
    times = [decode(gzip.decompress(r[2])).resource_metrics[0].scope_metrics[0].metrics[0]
             .gauge.data_points[0].time_unix_nano for r in requests]
    ok(times == sorted(times), "the oldest comes first")
    exporter.stop()
    ok("cret" not in exporter.log() and "hush" not in exporter.log(), "no secret is logged", exporter.log())
    receiver.close()


def check_refused():
    for options, sentence in (
            (("--otlp-endpoint", "ftp://127.0.0.1"), "not a URL of http:// or https://"),
            (("--otlp-endpoint", "http://"), "not a URL of http:// or https://"),
            (("--otlp-interval", "5"), "not a time of 100ms to 24h"),
            (("--otlp-interval", "1ms"), "not a time of 100ms to 24h"),
            (("--otlp-headers", "token"), "one has no '='"),
            (("--otlp-headers", "a=%zz"), "without two digits"),
            (("--otlp-headers", "a=x%0d%0ay: z"), "control character"),
            (("--otlp-compression", "zip"), "allowed: none, gzip")):
        run = subprocess.run([EXPORTER, "--root", MOUNT, "--address", "127.0.0.1:0",
                              "--otlp-endpoint", "http://127.0.0.1:1", *options],
                             stderr=subprocess.PIPE, timeout=WAIT_S)
        said = run.stderr.decode()
        ok(run.returncode == 64 and sentence in said, f"{' '.join(options)} is refused", said)


check_content()
check_failing()
check_away()
check_refused()
done()
