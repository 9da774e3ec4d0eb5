#!/usr/bin/env bash
#
# A real Prometheus scrapes the exporter and answers the questions that people ask of their GPUs.
#
# SPDX-License-Identifier: Apache-2.0

. "${0%/*}/tap.sh"
. "${0%/*}/mount.sh"
. "${0%/*}/exporter.sh"
. "${0%/*}/prometheus.sh"
need_mounts

cat >"$dir/node.yaml" <<'END'
node: golden
gpus: {count: 4, model: H100-80GB-HBM3}
workloads:
  - {name: train, devices: [0, 1], activity: 90, memory: 40GiB, namespace: default, pod: train-0, container: trainer}
END
mount_up -c "$dir/node.yaml"
exporter_up

cat >"$dir/prometheus.yml" <<END
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - job_name: gpus
    static_configs: [{targets: ["${url#http://}"]}]
END
prometheus_up "$dir/prometheus.yml"

wait_for eval '[[ $(query "up{job=\"gpus\"}") == 1 ]]'
ok $? 'Prometheus scrapes the exporter' || diag "$(cat "$dir/prometheus.log")"
wait_for eval '[[ $(query "count(DCGM_FI_DEV_GPU_UTIL)") == 4 ]]'
ok $? 'it has every GPU'
wait_for eval '[[ $(query "DCGM_FI_DEV_GPU_UTIL{namespace=\"default\"}") == "90 90" ]]'
ok $? 'an autoscaler sees the load of its namespace' || diag "$(query 'DCGM_FI_DEV_GPU_UTIL')"
is "$(query 'avg(DCGM_FI_DEV_GPU_UTIL{exported_pod="train-0"} or DCGM_FI_DEV_GPU_UTIL{pod="train-0"})')" 90 'and of its pod'
is "$(query 'sum(DCGM_FI_DEV_FB_USED{namespace="default"})')" 81920 'memory adds up'
is "$(query 'count by (modelName) (DCGM_FI_DEV_GPU_TEMP)')" 4 'labels group'
wait_for eval '[[ $(query "rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"}[10s]) / 1000 > 100") ]]'
ok $? 'the rate of the energy is a power' || diag "$(query 'rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0"}[10s]) / 1000')"
is "$(query 'DCGM_FI_DEV_XID_ERRORS > 0')" '' 'no GPU has an error'
put "$mnt/gpus/2/control/fault" 'xid 79'
wait_for eval '[[ $(query "DCGM_FI_DEV_XID_ERRORS{err_msg=~\".*fallen.*\"}") == 79 ]]'
ok $? 'until one has'
rmdir "$mnt/workloads/train"
wait_for eval '[[ -z $(query "DCGM_FI_DEV_GPU_UTIL{namespace=\"default\"}") ]]'
ok $? 'a pod that ends takes its series with it'
mount_down
wait_for eval '[[ $(query "up{job=\"gpus\"}") == 0 ]]'
ok $? 'without a mount the target is down'

kill -TERM "$server"
wait_gone "$server"
exporter_down
is "$mount_deaths$exporter_deaths" '' 'nothing died on the way'
tap_done
