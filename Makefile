# tsgtop: `make run` opens the screen, `make test` tests what this machine can
# run. `make` alone lists the rest.

GO      ?= go
CLANG   ?= clang-14
# NVML needs cgo, and so a C compiler; without one the build leaves NVML out
# and says so on the screen.
HAVE_CC := $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo yes)
TAGS    ?= $(if $(HAVE_CC),,nonvml)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -X tsgtop/internal/cli.version=$(VERSION) -X tsgtop/internal/cli.commit=$(COMMIT)
K       ?= 6.12,6.1

export CGO_ENABLED := $(if $(HAVE_CC),1,0)

.DEFAULT_GOAL := help
.PHONY: help run build test test-vm lint generate check-generated bench fuzz screens dist test-dist clean FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-zA-Z_-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: tsgtop ## build ./tsgtop

tsgtop: FORCE
	$(GO) build -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o $@ .

run: tsgtop ## build and open the live screen (no NVIDIA driver: the built-in recording); ARGS="..." are passed on
	@if [ -e /dev/nvidiactl ] && [ "$$(id -u)" != 0 ]; then exec sudo ./tsgtop $(ARGS); else exec ./tsgtop $(ARGS); fi

test: tsgtop ## run every test that this machine can run, and name those left out
	$(GO) run ./internal/testrun -tags '$(TAGS)' -vm auto -k '$(K)'

test-vm: ## run the kernel tests in a VM: make test-vm K=6.12,6.1
	$(GO) run ./internal/vmtest/cmd/vmtest -k '$(K)'

lint: ## gofmt, go vet, staticcheck; clang-format for the C side where it is installed
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not gofmt-clean:"; echo "$$out"; exit 1; }
	$(GO) vet -tags '$(TAGS)' ./...
	$(GO) tool staticcheck -tags '$(TAGS)' ./...
	@if command -v clang-format-14 >/dev/null; then clang-format-14 --dry-run -Werror $$(git ls-files 'bpf/*.c' 'bpf/*.h' ':!bpf/rm_abi.h'); \
	else echo "clang-format-14 is not installed: the C side is not checked"; fi

generate: ## make the eBPF objects again (pinned: clang 14)
	@command -v $(CLANG) >/dev/null || { echo "make generate needs $(CLANG) (Debian: apt-get install clang-14 llvm-14 libbpf-dev)"; exit 1; }
	$(GO) generate ./...

check-generated: generate ## fail when generated files differ from the committed ones
	@git diff --exit-code --stat -- bpf || { echo "generated files differ from the committed ones: run 'make generate' with $(CLANG) and commit"; exit 1; }

bench: ## print the numbers of docs/numbers.md that this machine can take
	$(GO) test -tags '$(TAGS)' -run '^$$' -bench . -benchmem ./...
	$(GO) run ./internal/bench -tags '$(TAGS)'

fuzz: ## run each fuzz test for 10 seconds
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -tags '$(TAGS)' -list '^Fuzz' $$p 2>/dev/null | grep ^Fuzz); do \
	echo "$$p $$f"; $(GO) test -tags '$(TAGS)' -run '^$$' -fuzz "^$$f$$" -fuzztime 10s $$p || exit 1; done; done

screens: ## make the pictures in docs/screens from the built-in recording (without one: from the simulated GPU)
	$(GO) run -tags '$(TAGS)' ./internal/shot/cmd/screens -o docs/screens

dist: ## make tarballs and .deb packages in dist/ (ARCHES="amd64 arm64"); needs the Go module proxy for nfpm
	VERSION='$(VERSION)' COMMIT='$(COMMIT)' GO='$(GO)' internal/packaging/dist.sh

test-dist: ## make the packages of this architecture, install them in a clean root and run them
	TSGTOP_TEST_DIST=1 $(GO) test -count=1 -v ./internal/packaging/...

clean: ## remove what was built
	rm -rf tsgtop dist
