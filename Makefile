# fakegpufs: one Makefile for everything; `make help` lists what it can do.
#
# Nothing is written outside $(BUILD) except by install, uninstall and format.
# Every list of sources below is a glob and may be empty.
# (A value is closed by its # at once: make would keep the blanks before a later one.)
#
# SPDX-License-Identifier: Apache-2.0

BUILD        ?= build#                      ## where everything is built
CFLAGS       ?= -O2 -g#                     ## optimisation and debugging
WERROR       ?=#                            ## 1 turns warnings into errors (CI sets it)
PREFIX       ?= /usr/local#                 ## where `make install` puts things
DESTDIR      ?=#                            ## staging directory of `make install`
TESTS        ?=#                            ## tests to run, by name: TESTS="world layers" (all)
WITHOUT      ?=#                            ## tests to leave out when all are run
TEST_SECONDS ?= 600#                        ## a test that takes longer is killed and fails
FUZZ_SECONDS ?= 60#                         ## how long each fuzz target runs
V            ?=#                            ## 1 shows whole command lines

PROVE        ?= prove
PROVE_FLAGS  ?= -j3
# The distribution's own: it sees the distribution's modules, which a pyenv's python3 does not.
PYTHON       ?= /usr/bin/python3

VERSION      := 0.1.0

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: FORCE

# --- Sources and what becomes of them ---------------------------------------

SIM_SRCS    := $(sort $(wildcard sim/*.c))
FUSEFS_SRCS := $(sort $(wildcard fusefs/*.c fusefs/cli/*.c))
NVML_SRCS   := $(sort $(wildcard mocknvml/*.c))
EXPORTER_SRCS := $(sort $(wildcard exporter/*.c))
SMI_SRCS    := $(sort $(wildcard mocknvml/smi/*.c))
K8S_SRCS    := $(sort $(wildcard k8s/common/*.c))
PODS_SRCS   := $(sort $(wildcard k8s/pods/*.c))
LABELS_SRCS := $(sort $(wildcard k8s/labels/*.c))
TEST_SRCS   := $(sort $(wildcard tests/test_*.c))
FUZZ_SRCS   := $(sort $(wildcard tests/fuzz_*.c))
BENCH_SRCS  := $(sort $(wildcard tests/bench_*.c))
SCRIPTS     := $(sort $(wildcard tests/*.t))
BENCH_SCRIPTS := $(sort $(wildcard tests/bench_*.sh))
# These need packages that no distribution has: see check-clients.
CLIENT_TESTS := $(filter-out $(if $(filter gpu-exporter,$(MORE_CLIENTS)),,tests/clients/smi-exporter.t), \
                  $(sort $(wildcard tests/clients/*.t)))
SCHEMAS     := $(sort $(wildcard schemas/models/*.yaml schemas/profiles/*.yaml \
                 schemas/identities/*.yaml schemas/scenarios/*.yaml schemas/counters/*.csv))

# Not built in: for people and their editors.
EXAMPLES    := $(sort $(wildcard schemas/examples/*.yaml)) schemas/config.schema.json \
               schemas/identity.schema.json schemas/scenario.schema.json

comma       := ,
objects      = $(patsubst %.c,$(BUILD)/%.o,$(1))
programs     = $(patsubst %.c,$(BUILD)/%,$(1))

LIBSIM      := $(BUILD)/libsim.a
LIBFUSEFS   := $(BUILD)/libfusefs.a
SIM_OBJS    := $(call objects,$(SIM_SRCS)) $(if $(SIM_SRCS),$(BUILD)/schemas.o)
FUSEFS_OBJS := $(call objects,$(FUSEFS_SRCS))
FUSEFS_MAIN := $(BUILD)/fusefs/fakegpufs.o
EXPORTER_OBJS := $(call objects,$(EXPORTER_SRCS)) $(BUILD)/page.o $(BUILD)/exporter/otlp.pb-c.o
PAGE_FILES  := $(sort $(wildcard exporter/page/*))
EXPORTER_MAIN := $(BUILD)/exporter/exporter.o
LIBEXPORTER := $(BUILD)/libexporter.a
PROGRAMS    := $(if $(FUSEFS_SRCS),$(BUILD)/fakegpufs) $(if $(EXPORTER_SRCS),$(BUILD)/fakegpu-exporter) \
               $(if $(SMI_SRCS),$(BUILD)/nvidia-smi)
SMI_OBJS    := $(call objects,$(SMI_SRCS))
LIBNVML     := $(if $(NVML_SRCS),$(BUILD)/libnvidia-ml.so.1)
# What the library shares with the daemon, built again so that it can be loaded anywhere.
PIC_SRCS    := $(NVML_SRCS) fusefs/reader.c fusefs/snapshot.c sim/metric.c sim/unit.c sim/text.c sim/why.c
PIC_OBJS    := $(patsubst %.c,$(BUILD)/pic/%.o,$(PIC_SRCS))
PAGES       := $(if $(FUSEFS_SRCS),$(BUILD)/pages)
LIBRARIES   := $(if $(NVML_SRCS),$(LIBNVML) $(BUILD)/libnvidia-ml.so)
# fakegpu-pods and fakegpu-labels are built where their libraries are; the others do not need them.
PODS_READY  := $(shell pkg-config --exists libcurl libprotobuf-c 2>/dev/null && command -v protoc-c)
PODS_PROTO  := $(BUILD)/k8s/pods/podresources.pb-c
PODS_OBJS   := $(if $(PODS_READY),$(call objects,$(PODS_SRCS)) $(PODS_PROTO).o)
PODS_MAIN   := $(BUILD)/k8s/pods/fakegpu-pods.o
LIBPODS     := $(BUILD)/libpods.a
LABELS_READY := $(shell pkg-config --exists libcurl jansson 2>/dev/null && echo yes)
LABELS_OBJS := $(if $(LABELS_READY),$(call objects,$(LABELS_SRCS)))
LABELS_MAIN := $(BUILD)/k8s/labels/fakegpu-labels.o
LIBLABELS   := $(BUILD)/liblabels.a
# What the two share.
K8S_OBJS    := $(if $(PODS_READY)$(LABELS_READY),$(call objects,$(K8S_SRCS)))
LIBK8S      := $(BUILD)/libk8s.a
PROGRAMS    += $(if $(PODS_READY),$(BUILD)/fakegpu-pods) $(if $(LABELS_READY),$(BUILD)/fakegpu-labels)
TEST_SRCS   := $(filter-out $(if $(PODS_READY),,tests/test_pods.c) $(if $(LABELS_READY),,tests/test_labels.c),$(TEST_SRCS))
# Container images: an OCI layout of them, their layers unpacked, and what is installed in them.
IMAGE       := $(BUILD)/image
IMAGES      := $(BUILD)/images.tar
ROOTS       := $(BUILD)/image.root
STAGE       := $(BUILD)/image.stage
TAP         := $(BUILD)/tests/tap.o
OBJS        := $(SIM_OBJS) $(FUSEFS_OBJS) $(EXPORTER_OBJS) $(SMI_OBJS) $(K8S_OBJS) $(PODS_OBJS) $(LABELS_OBJS) $(TAP) \
               $(call objects,$(TEST_SRCS) $(FUZZ_SRCS) $(BENCH_SRCS)) $(PIC_OBJS)

# --- Flags ------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Wwrite-strings -Wvla
# No fused multiply-add: the simulation gives the same bytes in every build.
C_FLAGS   = -std=gnu11 $(WARNINGS) $(if $(filter 1,$(WERROR)),-Werror) -ffp-contract=off \
            -D_GNU_SOURCE -DFAKEGPUFS_VERSION='"$(VERSION)"' -I. $(CPPFLAGS) $(CFLAGS)
LIBS     := -lyaml -lm -lfuse3 -lseccomp -lpthread
EXPORTER_LIBS := -lyaml -lm -lmicrohttpd -lprotobuf-c -ldeflate -lcrypt -lpthread
PODS_LIBS := -lcurl -lprotobuf-c
LABELS_LIBS := -lcurl -ljansson

# Of debugging information only what a backtrace needs: the library is loaded into others.
PIC_FLAGS = -fPIC -ffunction-sections -fdata-sections $(if $(filter -g%,$(CFLAGS)),-g1)
COMPILE   = $(CC) $(C_FLAGS) -MMD -MP -c
LINK      = $(CC) $(C_FLAGS) $(LDFLAGS)

say       = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$@)')
Q        := $(if $(filter 1,$(V)),,@)

# --- Build ------------------------------------------------------------------

.PHONY: all
all: $(LIBSIM) $(PROGRAMS) $(LIBRARIES) $(PAGES) ## build the programs into $(BUILD) (the default)
	$(if $(PODS_READY),,@echo "fakegpu-pods is left out: libcurl, libprotobuf-c or protoc-c is not installed; 'make deps' does that")
	$(if $(LABELS_READY),,@echo "fakegpu-labels is left out: libcurl or jansson is not installed; 'make deps' does that")

$(BUILD)/fakegpufs: $(FUSEFS_MAIN) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(BUILD)/fakegpu-exporter: $(EXPORTER_MAIN) $(LIBEXPORTER) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(EXPORTER_LIBS)

# It needs nothing of the library but its name: that is looked for when it runs.
$(BUILD)/nvidia-smi: $(SMI_OBJS) $(BUILD)/stamp/sources
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $(SMI_OBJS) -ldl

$(LIBSIM): $(SIM_OBJS) $(BUILD)/stamp/sources
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(SIM_OBJS)

# The daemon without its main, for tests.
$(LIBFUSEFS): $(filter-out $(FUSEFS_MAIN),$(FUSEFS_OBJS)) $(BUILD)/stamp/sources
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

# Man pages and completions, as the program tells them, laid out as below $(PREFIX)/share.
$(PAGES): $(BUILD)/fakegpufs
	$(call say,PAGES)
	$(Q)rm -rf $@ && $< help --pages $@

# The exporter without its main, for tests.
$(LIBEXPORTER): $(filter-out $(EXPORTER_MAIN),$(EXPORTER_OBJS)) $(BUILD)/stamp/sources
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(BUILD)/fakegpu-pods: $(PODS_MAIN) $(LIBPODS) $(LIBK8S) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(PODS_LIBS)

# The same without its main, for tests.
$(LIBPODS): $(filter-out $(PODS_MAIN),$(PODS_OBJS)) $(BUILD)/stamp/sources
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(BUILD)/fakegpu-labels: $(LABELS_MAIN) $(LIBLABELS) $(LIBK8S) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LABELS_LIBS)

$(LIBLABELS): $(filter-out $(LABELS_MAIN),$(LABELS_OBJS)) $(BUILD)/stamp/sources
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(LIBK8S): $(K8S_OBJS) $(BUILD)/stamp/sources
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(PODS_OBJS) $(BUILD)/tests/test_pods.o: CPPFLAGS += -I$(BUILD)
$(filter-out $(PODS_PROTO).o,$(PODS_OBJS)): | $(PODS_PROTO).c

# Only what its functions reach is kept, and only their names are visible.
$(LIBNVML): $(PIC_OBJS) mocknvml/exports.map $(BUILD)/stamp/sources
	$(call say,LINK)
	$(Q)$(LINK) -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,--version-script=mocknvml/exports.map \
	    -Wl,--gc-sections -Wl,-Bsymbolic -Wl,-z,defs \
	    -Wl,--compress-debug-sections=zlib -o $@ $(PIC_OBJS)

$(BUILD)/libnvidia-ml.so: $(LIBNVML)
	$(Q)ln -sf $(<F) $@

# Named one by one, so that make does not take the tests' for intermediate and remove them.
$(OBJS): $(BUILD)/stamp/flags | $(BUILD)/stamp/headers

$(BUILD)/pic/%.o: %.c
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(COMPILE) $(PIC_FLAGS) -o $@ $<

$(BUILD)/%.o: %.c
	$(call say,CC)
	$(Q)mkdir -p $(@D) && $(COMPILE) -o $@ $<

# What asserts of generated files say of their place: wherever that is, programs are the same.
$(BUILD)/%.o: $(BUILD)/%.c
	$(call say,CC)
	$(Q)$(COMPILE) -fmacro-prefix-map=$(BUILD)/= -o $@ $<

$(BUILD)/schemas.c: schemas/embed.sh $(SCHEMAS) $(BUILD)/stamp/schemas
	$(call say,EMBED)
	$(Q)sh schemas/embed.sh schema_files schemas $(SCHEMAS) >$@

# The messages of a protocol, as C.
$(BUILD)/%.pb-c.c: %.proto
	$(call say,PROTO)
	$(Q)mkdir -p $(@D) && protoc-c --c_out=$(BUILD) $<

$(BUILD)/exporter/otlp.o: $(BUILD)/exporter/otlp.pb-c.c
$(BUILD)/exporter/otlp.o $(BUILD)/exporter/otlp.pb-c.o: CPPFLAGS += -I$(BUILD)

$(BUILD)/page.c: schemas/embed.sh $(PAGE_FILES)
	$(call say,EMBED)
	$(Q)sh schemas/embed.sh page_files exporter/page $(PAGE_FILES) >$@

$(BUILD)/tests/test_%: $(BUILD)/tests/test_%.o $(TAP) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# Rows of all functions of the mock NVML, for the tests that call every one.
NVML_CALLERS := $(BUILD)/tests/test_nvml_misuse.o $(BUILD)/tests/test_nvml_files.o
$(NVML_CALLERS): $(BUILD)/tests/nvml_calls.inc
$(NVML_CALLERS): CPPFLAGS += -I$(BUILD)/tests

$(BUILD)/tests/nvml_calls.inc: tests/nvml_calls.sh mocknvml/nvml.h
	$(call say,GEN)
	$(Q)mkdir -p $(@D) && sh tests/nvml_calls.sh mocknvml/nvml.h >$@

# The library itself, with a look at everything it reads.
$(BUILD)/tests/test_nvml_files: $(BUILD)/tests/test_nvml_files.o $(TAP) $(PIC_OBJS)
	$(call say,LINK)
	$(Q)$(LINK) $(foreach f,metric_read reader_gpu reader_node reader_history reader_text reader_write reader_open_file,-Wl$(comma)--wrap=$(f)) \
	    -o $@ $^ -lpthread -lm

# Tests of the exporter's parts.
$(BUILD)/tests/test_exporter_%: $(BUILD)/tests/test_exporter_%.o $(TAP) $(LIBEXPORTER) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(EXPORTER_LIBS)

$(BUILD)/tests/test_pods: $(BUILD)/tests/test_pods.o $(TAP) $(LIBPODS) $(LIBK8S) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(PODS_LIBS)

$(BUILD)/tests/test_labels: $(BUILD)/tests/test_labels.o $(TAP) $(LIBLABELS) $(LIBK8S) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LIBS) $(LABELS_LIBS)

$(BUILD)/tests/bench_%: $(BUILD)/tests/bench_%.o $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(BUILD)/tests/fuzz_exporter: $(BUILD)/tests/fuzz_exporter.o $(LIBEXPORTER) $(LIBFUSEFS) $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(EXPORTER_LIBS)

$(BUILD)/tests/fuzz_%: $(BUILD)/tests/fuzz_%.o $(LIBSIM)
	$(call say,LINK)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# $(call stamp,NAME,TEXT): a file that changes only when TEXT does, so that other flags, or a
# file that came or went, rebuild what they should and nothing else.
define stamp
$(BUILD)/stamp/$(1): FORCE
	@mkdir -p $$(@D)
	@echo '$(subst ','\'',$(2))' | cmp -s - $$@ || echo '$(subst ','\'',$(2))' >$$@
endef
$(eval $(call stamp,flags,$(COMPILE) $(PIC_FLAGS) $(LDFLAGS)))
$(eval $(call stamp,sources,$(SIM_SRCS) $(FUSEFS_SRCS) $(EXPORTER_SRCS) $(K8S_SRCS) $(PODS_SRCS) $(LABELS_SRCS) $(PIC_SRCS) $(SMI_SRCS)))
$(eval $(call stamp,schemas,$(SCHEMAS)))

$(BUILD)/stamp/headers:
	@mkdir -p $(@D)
	@command -v $(firstword $(CC)) >/dev/null || \
	    { echo "there is no compiler '$(firstword $(CC))' here: run 'make deps'" >&2; exit 1; }
	@echo '#include <yaml.h>' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 || \
	    { echo "libyaml's header yaml.h is not installed: run 'make deps'" >&2; exit 1; }
	@touch $@

-include $(OBJS:.o=.d)

# --- Run --------------------------------------------------------------------

# Root has /run; anybody else has a directory of his own.
MOUNT ?= $(if $(filter 0,$(shell id -u)),/run/fakegpufs,$(or $(XDG_RUNTIME_DIR),/tmp)/fakegpufs)#   ## where `make up` mounts

.PHONY: up
up: $(call with_apt,deps) ## install what is missing, build, mount 8 simulated A100s, say what to try
	$(SUBMAKE) all
	@mountpoint -q '$(MOUNT)' || $(BUILD)/fakegpufs mount '$(MOUNT)'
	@printf '%s\n' '' 'Try:' \
	    "  cat $(MOUNT)/gpus/0/sample" \
	    "  echo 80 > $(MOUNT)/gpus/0/control/utilization_gpu_percent" \
	    "  cat $(MOUNT)/gpus/0/metrics/power_usage_mw" \
	    "  mkdir $(MOUNT)/workloads/train && echo 90:5:1m > $(MOUNT)/workloads/train/activity" \
	    "  $(MOUNT)/usr/bin/nvidia-smi" \
	    "  $(BUILD)/fakegpu-exporter --root $(MOUNT)    # metrics, and a live page, on http://localhost:9400" \
	    "  echo fallen_off_bus > $(MOUNT)/gpus/3/control/fault; ls $(MOUNT)/dev; tail $(MOUNT)/kmsg" \
	    "  make down"

.PHONY: down
down: ## unmount what `make up` mounted
	@$(BUILD)/fakegpufs umount '$(MOUNT)'

# --- Tests ------------------------------------------------------------------

# tests/test_world.c, tests/layers.t and their programs are called world and layers.
name_of      = $(patsubst test_%,%,$(basename $(notdir $(1))))
# What takes longest begins first, and is not all that is left in the end.
LONGEST     := tests/ready_scenarios.t tests/exporter_server.t
ALL_TESTS    = $(strip $(LONGEST) $(call programs,$(TEST_SRCS)) $(filter-out $(LONGEST),$(SCRIPTS)))
PICKED       = $(foreach w,$(TESTS),$(call name_of,$(w)))
is_picked    = $(if $(TESTS),$(filter $(PICKED),$(call name_of,$(1))),$(filter-out $(WITHOUT),$(call name_of,$(1))))
PICKED_TESTS = $(strip $(foreach t,$(ALL_TESTS),$(if $(call is_picked,$(t)),$(t))))
UNKNOWN      = $(filter-out $(foreach t,$(ALL_TESTS),$(call name_of,$(t))),$(PICKED))

SANITIZED    = -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
# The shadow memory of sanitizers older than the kernel collides with high-entropy ASLR now and
# then. Where a container forbids this, it is left out.
NO_ASLR      = $(shell setarch -R true 2>/dev/null && echo setarch -R)
SUBMAKE      = +@$(MAKE) --no-print-directory
# Elsewhere what tests need is the person's to install, and must not be in their way.
HAVE_APT    := $(shell command -v apt-get 2>/dev/null)
with_apt     = $(if $(HAVE_APT),$(1))

# A make of its own: it must look at the tools only after they were installed.
.PHONY: check
check: $(call with_apt,deps-test) ## install what tests need, build, run every test
	$(SUBMAKE) run-tests

# Tests of documents, of images, of queries, of rules and of ready scenarios run no code of ours that others do not:
# they are left out.
UNSANITIZED := alerts ready_scenarios docs docs_filesystem layers schema dashboards image compose propagation

.PHONY: check-asan
check-asan: ## the tests of code under the address and undefined-behaviour sanitizers
	$(SUBMAKE) check BUILD=$(BUILD)/asan WERROR= RUNNER='$(NO_ASLR)' WITHOUT='$(UNSANITIZED)' \
	    CFLAGS='$(SANITIZED) -fsanitize=address,undefined'

.PHONY: check-tsan
check-tsan: ## the same under the thread sanitizer
	$(SUBMAKE) check BUILD=$(BUILD)/tsan WERROR= RUNNER='$(NO_ASLR)' WITHOUT='$(UNSANITIZED)' \
	    CFLAGS='$(SANITIZED) -fsanitize=thread'

# Programs of others, at the versions in tests/clients/versions, in a place of their own. What is missing here is
# missing: the tests that need it say so.
# One is not to be had everywhere, and only when asked for: make check-clients MORE_CLIENTS=gpu-exporter
MORE_CLIENTS  ?=#                ## clients besides those that every registry has
CLIENTS_READY := $(patsubst %,$(BUILD)/clients/%/installed,python go rust debian node telegraf adapter manifests dashboards $(MORE_CLIENTS))

$(BUILD)/clients/go/installed: $(wildcard tests/clients/go/go.* tests/clients/go/*/*.go tests/clients/otlp/*)
$(BUILD)/clients/manifests/installed: $(wildcard tests/clients/manifests/* tests/clients/compose/*)
$(BUILD)/clients/rust/installed: $(wildcard tests/clients/rust/Cargo.* tests/clients/rust/src/*.rs)
$(CLIENTS_READY): $(BUILD)/clients/%/installed: tests/clients/install.sh tests/clients/versions
	$(call say,FETCH)
	$(Q)PYTHON='$(PYTHON)' tests/clients/install.sh $* $(@D)

.PHONY: check-clients
check-clients: $(call with_apt,deps-clients) ## run other people's unmodified programs against a mount
	$(SUBMAKE) run-clients

.PHONY: run-clients
run-clients: all $(CLIENTS_READY) $(if $(call is_picked,tests/clients/cdi.t),$(IMAGES))
	@BUILD='$(abspath $(BUILD))' PYTHON='$(PYTHON)' CLIENTS='$(abspath $(BUILD))/clients' \
	    $(PROVE) $(PROVE_FLAGS) --exec 'timeout -k 10 $(TEST_SECONDS)' \
	    $(foreach t,$(CLIENT_TESTS),$(if $(call is_picked,$(t)),$(t)))

.PHONY: run-tests
run-tests: all $(PICKED_TESTS) $(if $(call is_picked,image)$(call is_picked,propagation)$(call is_picked,compose),$(IMAGES))
	$(if $(UNKNOWN),$(error no test is called '$(UNKNOWN)'))
	@$(if $(PICKED_TESTS),BUILD='$(abspath $(BUILD))' PYTHON='$(PYTHON)' $(RUNNER) \
	    $(PROVE) $(PROVE_FLAGS) --exec 'timeout -k 10 $(TEST_SECONDS)' $(PICKED_TESTS), \
	    echo 'there are no tests yet')

.PHONY: fuzz
fuzz: $(call with_apt,deps-dev) ## fuzz each target for FUZZ_SECONDS; a crash fails
	$(SUBMAKE) run-fuzzers BUILD=$(BUILD)/fuzz CC=$(CLANG) RUNNER='$(NO_ASLR)' \
	    CFLAGS='$(SANITIZED) -fsanitize=fuzzer-no-link,address,undefined'

# What is found is kept in $(BUILD)/corpus and is where the next run begins.
.PHONY: run-fuzzers
run-fuzzers: $(call programs,$(FUZZ_SRCS))
	@$(if $(FUZZ_SRCS),,echo 'there are no fuzz targets yet';) \
	failed=0; \
	for program in $^; do \
	    target=$${program##*/}; \
	    corpus=$(BUILD)/corpus/$$target; crash=$(BUILD)/crash/$$target; log=$$program.log; \
	    seeds=tests/corpus/$$target; [ -d $$seeds ] || seeds=; \
	    mkdir -p $$corpus $$crash; \
	    if $(RUNNER) $$program -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4096 \
	        -artifact_prefix=$$crash/ $$corpus $$seeds >$$log 2>&1; then \
	        echo "$$target: $$(tail -n 1 $$log)"; \
	    else \
	        failed=1; tail -n 60 $$log; \
	        echo "$$target: failed; the whole log is $$log; reproduce it with:"; \
	        find $$crash -type f -newer $$program -printf "    $$program %p\n"; \
	    fi; \
	done; \
	exit $$failed

.PHONY: bench
bench: $(call with_apt,deps-bench) ## install what benchmarks need, build, run every one
	$(SUBMAKE) run-benches

.PHONY: run-benches
run-benches: all $(call programs,$(BENCH_SRCS))
	@for program in $(call programs,$(BENCH_SRCS)) $(BENCH_SCRIPTS); do \
	    BUILD='$(abspath $(BUILD))' PYTHON='$(PYTHON)' $$program || exit; \
	done

# --- Container images -------------------------------------------------------

.PHONY: image
image: $(IMAGES) ## build the container images: $(BUILD)/images.tar to load, $(BUILD)/image, an OCI layout

# What the images are made of, for k8s/Dockerfile, which packs it itself.
.PHONY: rootfs
rootfs: $(ROOTS)/done

$(ROOTS)/done: $(PROGRAMS) $(LIBRARIES) $(SCHEMAS) $(EXAMPLES) k8s/image/images k8s/image/rootfs.sh
	$(Q)rm -rf '$(STAGE)'
	$(SUBMAKE) -s install DESTDIR='$(abspath $(STAGE))' PREFIX=/usr
	$(call say,ROOTFS)
	$(Q)k8s/image/rootfs.sh '$(STAGE)' '$(@D)' && touch $@

$(IMAGE)/index.json: $(ROOTS)/done k8s/image/oci.sh
	$(call say,IMAGE)
	$(Q)k8s/image/oci.sh '$(ROOTS)' '$(@D)' $(VERSION)

# Without the two files of a layout: containerd takes their short names as they are, and no kubelet finds those.
$(IMAGES): $(IMAGE)/index.json
	$(Q)LC_ALL=C tar -C '$(<D)' --create --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
	    manifest.json blobs >$@.new && mv $@.new $@

# --- Format -----------------------------------------------------------------

# Versions disagree on details: 14 is the one that decides.
CLANG_FORMAT ?= $(call first_found,clang-format-14 clang-format)
CLANG        ?= $(call first_found,clang clang-14)
first_found   = $(or $(firstword $(foreach c,$(1),$(shell command -v $(c) 2>/dev/null))), \
                     $(lastword $(1)))
C_FILES       = $(shell find sim fusefs mocknvml exporter k8s tests -name '*.[ch]' 2>/dev/null | sort)

.PHONY: format
format: $(call with_apt,deps-dev) ## lay out every C file as .clang-format says
	@$(if $(C_FILES),$(CLANG_FORMAT) -i $(C_FILES))

.PHONY: format-check
format-check: $(call with_apt,deps-dev) ## fail when `make format` would change a file
	@$(if $(C_FILES),$(CLANG_FORMAT) --dry-run --Werror $(C_FILES))

# --- Packages ---------------------------------------------------------------

# Debian's names; of a|b|c any one will do, and the first that apt knows is installed.
# docs/dependencies.md says what each is for.
BUILD_PKGS := gcc libc6-dev make pkg-config|pkgconf libyaml-dev libfuse3-dev fuse3 libseccomp-dev \
              libmicrohttpd-dev libdeflate-dev libcrypt-dev \
              libcurl4-gnutls-dev|libcurl4-openssl-dev libjansson-dev libprotobuf-c-dev protobuf-c-compiler
TEST_PKGS  := perl libxml2-utils python3 python3-yaml python3-jsonschema busybox-static runc|crun util-linux procps \
              groff-base zsh fish patch curl openssl prometheus python3-prometheus-client \
              python3-protobuf protobuf-compiler python3-grpcio
CLIENT_PKGS := python3-venv tmux libncursesw6 pciutils podman
BENCH_PKGS := curl wrk nginx-light|nginx
DEV_PKGS   := clang|clang-14 libclang-rt-dev|libclang-rt-14-dev|libclang-common-14-dev \
              clang-format-14|clang-format chromium chromium-driver python3-selenium

.PHONY: deps
deps: ## install the packages that building needs and this system lacks
	$(call install_missing,$(BUILD_PKGS))

.PHONY: deps-test
deps-test: ## the same for building and testing
	$(call install_missing,$(BUILD_PKGS) $(TEST_PKGS))

.PHONY: deps-clients
deps-clients: ## the same for building, testing and running other people's programs
	$(call install_missing,$(BUILD_PKGS) $(TEST_PKGS) $(CLIENT_PKGS))

.PHONY: deps-bench
deps-bench: ## the same for building and measuring
	$(call install_missing,$(BUILD_PKGS) $(BENCH_PKGS))

.PHONY: deps-dev
deps-dev: ## the same for building, testing, fuzzing and formatting
	$(call install_missing,$(BUILD_PKGS) $(TEST_PKGS) $(DEV_PKGS))

either    = $(subst |, ,$(1))
first_of  = $(foreach p,$(1),$(firstword $(call either,$(p))))
installed = $(shell dpkg-query -W -f '$${Package}:$${db:Status-Status} ' \
                $(call either,$(1)) 2>/dev/null)
missing   = $(call lacking,$(1),$(call installed,$(1)))
lacking   = $(foreach p,$(1),$(if $(filter $(addsuffix :installed,$(call either,$(p))),$(2)),,$(p)))

install_missing = $(call install,$(strip $(call missing,$(1))))
install         = $(if $(1),$(call apt_install,$(1)),@:)

define apt_install
@command -v apt-get >/dev/null || { \
    echo "there is no apt-get here; please install what Debian calls: $(1)" >&2; exit 1; }; \
root=; [ "$$(id -u)" = 0 ] || root=$$(command -v sudo) || { \
    echo "please run as root: apt-get install $(call first_of,$(1))" >&2; exit 1; }; \
echo "installing: $(1)"; \
$$root apt-get -qq update; \
names=; \
for group in $(patsubst %,'%',$(1)); do \
    found=; \
    for name in $$(echo "$$group" | tr '|' ' '); do \
        [ "$$found" ] || ! apt-cache show "$$name" >/dev/null 2>&1 || found=$$name; \
    done; \
    [ "$$found" ] || echo "apt does not know $$group; going on without it" >&2; \
    names="$$names $$found"; \
done; \
$$root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 install $$names >/dev/null
endef

# --- Install and tidy -------------------------------------------------------

BINDIR   = $(DESTDIR)$(PREFIX)/bin
LIBDIR   = $(DESTDIR)$(PREFIX)/lib/fakegpufs
SHAREDIR = $(DESTDIR)$(PREFIX)/share
DATADIR  = $(SHAREDIR)/fakegpufs

.PHONY: install
install: all ## install into $(DESTDIR)$(PREFIX)
	$(Q)$(foreach p,$(PROGRAMS),install -D -m 0755 $(p) '$(BINDIR)/$(notdir $(p))' &&) :
	$(Q)$(if $(LIBNVML),install -D -m 0755 $(LIBNVML) '$(LIBDIR)/libnvidia-ml.so.1' && \
	    ln -sf libnvidia-ml.so.1 '$(LIBDIR)/libnvidia-ml.so')
	$(Q)$(foreach s,$(SCHEMAS) $(EXAMPLES),install -D -m 0644 $(s) '$(DATADIR)/$(s)' &&) :
	$(Q)$(if $(PAGES),cd $(PAGES) && find . -type f -exec install -D -m 0644 {} '$(SHAREDIR)/{}' \;)

.PHONY: uninstall
uninstall: ## remove what `make install` put there
	$(Q)$(foreach p,$(PROGRAMS),rm -f '$(BINDIR)/$(notdir $(p))' &&) :
	$(Q)rm -f '$(SHAREDIR)'/man/man1/fakegpufs.1 '$(SHAREDIR)'/man/man1/fakegpufs-*.1 \
	    '$(SHAREDIR)/bash-completion/completions/fakegpufs' '$(SHAREDIR)/zsh/site-functions/_fakegpufs' \
	    '$(SHAREDIR)/fish/vendor_completions.d/fakegpufs.fish'
	$(Q)rm -rf '$(DATADIR)' '$(LIBDIR)'

.PHONY: clean
clean: ## remove $(BUILD)
	$(Q)rm -rf '$(BUILD)'

.PHONY: help
help: ## show this list
	@echo 'Targets:'
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    awk -F '\t' '{ printf "  %-14s %s\n", $$1, $$2 }'
	@echo 'Variables:'
	@sed -nE 's/^([A-Z_]+) *\?= *([^#]*)#.*## (.*)/\1\t\2\t\3/p' $(firstword $(MAKEFILE_LIST)) | \
	    awk -F '\t' '{ printf "  %-14s %s%s\n", $$1, $$3, $$2 == "" ? "" : " (" $$2 ")" }'
