# Everything a contributor needs. `make help` explains the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The product is built without cgo; tests are not, for the race detector needs it.
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
RELEASE ?=
VERSION := prxm.uz/proxima/internal/version
LDFLAGS := -s -w -X $(VERSION).release=$(RELEASE) -X $(VERSION).commit=$(COMMIT)

# Generators and the linter, each at one version, live in the cache, outside of go.mod.
TOOLS := $(if $(PROXIMA_TEST_CACHE),$(PROXIMA_TEST_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/proxima)/tools
export PATH := $(TOOLS):$(PATH)
SQLC := github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1
TEMPL := github.com/a-h/templ/cmd/templ@v0.3.1100
OAPI_CODEGEN := github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2
GOFUMPT := mvdan.cc/gofumpt@v0.12.0
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# $(call tool,PATH@VERSION) installs a tool once; the stamp's name carries the version.
name = $(notdir $(firstword $(subst @, ,$(1))))
stamp = $(TOOLS)/.$(name)@$(lastword $(subst @, ,$(1)))
define tool
	test -e '$(stamp)' || { mkdir -p '$(TOOLS)'; echo 'installing $(1)'; \
	  GOBIN='$(TOOLS)' CGO_ENABLED=0 GOFLAGS=-trimpath go install '$(1)'; touch '$(stamp)'; }
endef

# Where the suites take their shares of two cores: two packages at once, each with its own servers.
TEST_FLAGS ?= -p 2 -timeout 30m
GENERATED := api internal/console/store/internal/sqlgen internal/console/web docs/configuration.md docs/permissions.md

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Console, a real API server and an agent, until interrupted (DEMO_EXIT=1: until the gates passed).
	@echo 'Compiling the demo (the first time takes some minutes) ...'
	go run ./test/demo

.PHONY: build
build: ## Build the programs into bin/ (RELEASE=0.9.0 for a release).
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: test
test: ## Everything that must pass: vet, unit tests, end-to-end tests on real servers, some fuzzing.
	@.ci/stage prepare go run ./test/harness/cmd/prepare
	@.ci/stage vet go vet ./...
	@.ci/stage vet-testclock go vet -tags testclock ./internal/clock/... ./cmd/...
	@.ci/stage test-testclock go test -tags testclock ./internal/clock/...
	@.ci/stage test go test $(TEST_FLAGS) ./...
	@.ci/stage fuzz .ci/fuzz 4s

.PHONY: race
race: ## The tests of single packages under the race detector.
	go test -race -short -p 2 -timeout 30m $$(go list ./... | grep -v /test/)

.PHONY: lint
lint: ## Import rules, bugs, security (builds the linter once, which takes minutes).
	@$(call tool,$(GOLANGCI_LINT))
	golangci-lint run ./...

.PHONY: fmt
fmt: ## Format the source that is written by hand.
	@$(call tool,$(GOFUMPT))
	gofumpt -extra -w cmd db docs infra internal test

.PHONY: generate
generate: ## Write generated code and pages anew.
	@$(call tool,$(SQLC))
	@$(call tool,$(TEMPL))
	@$(call tool,$(OAPI_CODEGEN))
	sqlc generate -f internal/console/store/sqlc.yaml
	templ generate -path internal/console/web
	oapi-codegen -config api/console/server.cfg.yaml api/openapi/console.yaml
	oapi-codegen -config api/console/client/client.cfg.yaml api/openapi/console.yaml
	go test ./docs -update

.PHONY: verify
verify: generate ## Generate anew and fail where that changes something.
	@git diff --exit-code -- $(GENERATED) && test -z "$$(git status --porcelain -- $(GENERATED))" || \
	  { git status --short -- $(GENERATED); echo 'generated files differ: run make generate and commit the result'; exit 1; }

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZ_TIME (default 1m) each.
	@for package in $$(grep -rl --include='*_test.go' '^func Fuzz' internal | xargs -n1 dirname | sort -u); do \
	  for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$package/*_test.go | sed 's/func //'); do \
	    echo "== $$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${FUZZ_TIME:-1m} ./$$package; \
	  done; done

.PHONY: kill
kill: ## Kill programs KILLS times (default 200; SEED repeats a run) and count what is stored; near 10 minutes.
	go test -count=1 -v -timeout 30m ./test/kills -kills $${KILLS:-200} -seed $${SEED:-0}

.PHONY: load
load: ## 500 agents on each database, for five minutes, and a restart under them; near 20 minutes.
	go test -count=1 -v -timeout 40m ./test/load -agents 500 -attempts 1000 -sync 1m -heartbeat 30s -steady 5m

.PHONY: bench
bench: ## The benchmarks behind docs/benchmarks.md.
	go test -run '^$$' -bench . -benchmem ./...
