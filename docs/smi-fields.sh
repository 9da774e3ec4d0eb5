#!/bin/sh
#
# The table of fields in docs/nvidia-smi.md, from what `nvidia-smi --help-query-gpu` prints:
#
#     build/nvidia-smi --help-query-gpu | sh docs/smi-fields.sh
#
# SPDX-License-Identifier: Apache-2.0

echo '| field | what it is |'
echo '| --- | --- |'
awk '/^"/ { names = $0; gsub(/"/, "`", names); gsub(/ or /, ", ", names); getline help; print "| " names " | " help " |" }'
