# Everything that a developer of twinsrv runs. `make` alone lists the targets.
#
# It needs Go (the version in go.mod) and make. `make race`, and so `make
# check`, also need a C compiler: the race detector is linked by cgo. Linters
# come from tools/go.mod; nothing is installed globally, except that `make
# test` fetches strace, curl, PostgreSQL and Chromium (350 MB; BROWSER=0 leaves
# it and the tests of the explorer page out) where they are missing and it may
# (see tools/scripts/need.sh).
#
# Tests that need something beyond Go look at TWINSRV_REQUIRE, a comma
# separated list (known: strace, curl, postgres, chromium). Where the thing is
# missing, a test that needs it fails if it is listed, and else skips with a
# reason that begins with "needs strace: " and the like. With CI=true everything
# known is required, whatever BROWSER says.

SHELL := /bin/bash
GO    ?= go

# Variables to give on the command line.
ARGS      ?=
BENCH     ?= .
FUZZTIME  ?= 20s
KILLS     ?= 200
RAPID_CHECKS ?= 2000
SEEDS     ?= 20000
SPECTRAL  ?= 6.16.3
BASE      ?= 0
TESTFLAGS ?=
PKGS      ?= ./...

ifeq ($(CI),true)
TWINSRV_REQUIRE ?= strace,curl,postgres,chromium
endif
export TWINSRV_REQUIRE

# The modules of this repository: the product, its benchmarks, its tools.
NESTED := $(patsubst %/go.mod,%,$(wildcard bench/go.mod tools/go.mod))
LINTER := $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run -c $(CURDIR)/.golangci.yml

.DEFAULT_GOAL := help
.PHONY: help run demo build test race screenshots kills model sim sim-mutants sim-cover fuzz bench steady where cover lint spectral fmt tidy check \
	fmt-check vet-check tidy-check docs-check nested-check cc programs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## serve the example buildings with a simulated day (ARGS="--listen 127.0.0.1:9000")
	$(GO) run ./examples/buildings $(ARGS)

demo: ## the same in a temporary folder, to its end
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(GO) run ./examples/buildings --data "$$dir/data" --listen 127.0.0.1:0 --exit $(ARGS)

build: ## compile everything; bin/twinsrv
	$(GO) build ./...
	$(GO) build -trimpath -o bin/ ./cmd/...

test: programs ## all tests, without a C compiler (PKGS=./pod TESTFLAGS="-run TestBurst -v")
	CGO_ENABLED=0 $(GO) test -timeout 20m $(TESTFLAGS) $(PKGS)

# What these tests drive are programs of their own, built without the detector:
# under it they would take minutes and find nothing more.
DRIVERS := /internal/(browsertest|killtest)$$

race: cc ## the tests under the race detector; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -timeout 25m $(TESTFLAGS) $$($(GO) list $(PKGS) | grep -vE '$(DRIVERS)')

screenshots: ## draw the pictures of the explorer page anew, docs/images
	@TWINSRV_REQUIRE=chromium tools/scripts/need.sh chromium
	TWINSRV_REQUIRE=chromium $(GO) test -count=1 -v -run TestScreenshots $(TESTFLAGS) ./internal/browsertest -args -screenshots "$(CURDIR)/docs/images"

kills: programs ## the long form of the tests that kill processes, on every store (KILLS=200 each)
	TWINSRV_KILLS=$(KILLS) $(GO) test -count=1 -v -timeout 120m -run 'Kill|Broken' $(TESTFLAGS) \
		./internal/killtest ./examples/buildings ./examples/companies ./server ./persist/bolt ./persist/commitlog ./persist/jsonfile ./persist/postgres

model: programs ## the model-based test for longer, on every store (RAPID_CHECKS=2000; 100 is what make test does)
	RAPID_CHECKS=$(RAPID_CHECKS) $(GO) test -count=1 -v -timeout 120m $(TESTFLAGS) ./internal/modeltest

sim: ## the simulation under SEEDS seeds (20000) from BASE (0 is a random one)
	$(GO) run ./internal/sim/simulate --seeds $(SEEDS) --base $(BASE) $(ARGS)

sim-mutants: ## look for each deliberate fault by simulation, from random seeds, and print how many it took
	$(GO) run ./internal/sim/simulate --mutants --seeds $(SEEDS) --within 2m $(ARGS)

sim-cover: ## the statements that the simulation reaches; sim-cover.out
	SEEDS=2000 $(GO) test -count=1 -timeout 20m -coverprofile=sim-cover.out \
		-coverpkg=./actor,./persist,./entity,./pod ./internal/sim/...
	@tools/scripts/coverage.sh sim-cover.out

fuzz: ## every fuzz target for FUZZTIME each (20s)
	GO="$(GO)" tools/scripts/fuzz.sh $(FUZZTIME)

bench: ## measure against the references (BENCH=regexp selects)
	cd bench && $(GO) run . -bench "$(BENCH)" $(ARGS)

where: ## print where the time of a durable command goes (FOR=10s)
	cd bench && $(GO) run . -where -for $(or $(FOR),10s) $(ARGS)

steady: ## load a store with a commit log for ten minutes (FOR=10m); fails when memory or disk grow
	cd bench && $(GO) run . -steady $(or $(FOR),10m) $(ARGS)

cover: ## statement coverage over all packages; coverage.out
	CGO_ENABLED=0 $(GO) test -timeout 20m -coverpkg=./... -coverprofile=coverage.out $(TESTFLAGS) $(PKGS)
	@$(GO) tool cover -func=coverage.out | tail -n 1

lint: ## golangci-lint over all modules; its first build takes some minutes
	$(LINTER) ./...
	@set -e; for m in $(NESTED); do echo "(cd $$m) golangci-lint"; (cd $$m && $(LINTER) ./...); done

spectral: ## lint bin/openapi.json, the OpenAPI document; needs npx, and the network for what it has not fetched yet
	@mkdir -p bin
	$(GO) run ./internal/openapi > bin/openapi.json
	npx --yes @stoplight/spectral-cli@$(SPECTRAL) lint --ruleset .spectral.yaml --fail-severity error --format text bin/openapi.json
	@echo; echo "no errors"

fmt: ## format all Go files
	gofmt -s -w .

tidy: ## go mod tidy in all modules
	$(GO) mod tidy
	@set -e; for m in $(NESTED); do echo "(cd $$m) go mod tidy"; $(GO) -C $$m mod tidy; done

check: fmt-check tidy-check vet-check docs-check nested-check lint race ## everything that must be green before a commit

fmt-check: ## gofmt has nothing to change
	@out=$$(gofmt -s -l .); if [ -n "$$out" ]; then echo "not formatted (make fmt mends it):"; echo "$$out"; exit 1; fi

tidy-check: ## go mod tidy has nothing to change
	$(GO) mod tidy -diff
	@set -e; for m in $(NESTED); do echo "(cd $$m) go mod tidy -diff"; $(GO) -C $$m mod tidy -diff; done

vet-check: ## go vet, with the mutants and without
	$(GO) vet ./...
	$(GO) vet -tags mutants ./actor ./persist ./entity ./pod ./internal/...

docs-check: ## the documents' Go code compiles, their links lead somewhere
	$(GO) -C tools run ./doccheck -root ..

nested-check: ## the modules bench and tools vet, build and pass their tests
	@set -e; for m in $(NESTED); do echo "(cd $$m) go vet, go build, go test -short"; \
	$(GO) -C $$m vet ./...; $(GO) -C $$m build -buildvcs=false -o /dev/null ./...; CGO_ENABLED=0 $(GO) -C $$m test -short ./...; done

# Not in the list: what other targets need.
cc:
	@command -v $$($(GO) env CC) >/dev/null || { echo "make race needs a C compiler ($$($(GO) env CC) is not on the path); make test does without."; exit 1; }

programs:
	@tools/scripts/need.sh strace curl postgres chromium
