# Every task a person runs. `make` alone lists them.

CARGO  ?= cargo
TARGET ?= $(shell uname -m)-unknown-linux-gnu
PREFIX ?= /usr/local

# The lab makes network namespaces: cargo runs its programs through sudo unless this is root already.
ROOT   := $(if $(filter 0,$(shell id -u)),,sudo -E)
RUNNER := CARGO_TARGET_$(shell echo $(TARGET) | tr 'a-z-' 'A-Z_')_RUNNER
LAB    := AS_ROUTER_BINARY=$(CURDIR)/dist/as-router $(if $(ROOT),$(RUNNER)="$(ROOT)")

# A static program cannot look up whether libc has getrandom(2): without the second flag it reads /dev/urandom, which an
# image FROM scratch need not have.
STATIC := -C target-feature=+crt-static --cfg getrandom_backend="linux_getrandom"

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: router launcher ## dist/as-router, one static file, and dist/agent-sandbox

.PHONY: router
router:
	@scripts/need-static-libc
	RUSTFLAGS='$(STATIC)' $(CARGO) build --locked --release --target $(TARGET) -p as-router
	install -D -m 755 target/$(TARGET)/release/as-router dist/as-router

.PHONY: launcher
launcher:
	$(CARGO) build --locked --release -p agent-sandbox
	install -D -m 755 target/release/agent-sandbox dist/agent-sandbox
	install -D -m 644 allowed-hosts dist/allowed-hosts

.PHONY: run
run: setup router ## Show allowed and refused requests through router and forwarder, in namespaces
	$(LAB) $(CARGO) run --locked --quiet -p system-tests --bin demo

.PHONY: test
test: setup unit e2e ## Everything: install what is needed, unit tests, system tests

.PHONY: unit
unit: ## Table and property tests of the crates (no root, seconds)
	$(CARGO) test --locked --workspace --exclude system-tests

.PHONY: e2e
e2e: setup router ## System tests: real clients and servers around the static binary (root or sudo)
	$(LAB) $(CARGO) test --locked -p system-tests --test e2e $(if $(TESTS),-- $(TESTS))

.PHONY: images
images: router ## Container images of router and sandbox (podman; as root without one, in the podman lab)
	images/build

.PHONY: test-session
test-session: images launcher ## Whole sessions of the launcher on rootless podman (your own; for root the podman lab)
	AGENT_SANDBOX_TEST_LAUNCHER=$(CURDIR)/dist/agent-sandbox $(CARGO) test --locked -p system-tests --test session

.PHONY: test-lab
test-lab: images ## Images and nested podman, on rootless podman 5.4 and 4.3 in the podman lab (minutes, gigabytes)
	tests/podman-lab/check --images
	tests/podman-lab/copy-images
	tests/podman-lab/check --debian 12 --images

.PHONY: bench
bench: ## The race against nginx, HAProxy, sniproxy, socat and dnsmasq (installs them; a quiet machine is needed)
	bench/run

.PHONY: setup
setup: ## Install the Debian packages that building and testing need
	@scripts/setup

.PHONY: lint
lint: ## Format, clippy, dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	@command -v cargo-deny > /dev/null || { echo 'cargo-deny is missing: cargo install --locked cargo-deny' >&2; exit 1; }
	$(CARGO) deny --locked check licenses bans sources

.PHONY: install
install: build ## Install both binaries and the default policy under PREFIX (/usr/local)
	install -D -m 755 dist/as-router $(DESTDIR)$(PREFIX)/bin/as-router
	install -D -m 755 dist/agent-sandbox $(DESTDIR)$(PREFIX)/bin/agent-sandbox
	install -D -m 644 allowed-hosts $(DESTDIR)$(PREFIX)/share/agent-sandbox/allowed-hosts

.PHONY: clean
clean: ## Remove what was built
	$(CARGO) clean
	rm -rf dist
