# The front door. It hides nothing that the CMake presets do not also do; `make` alone lists what there is.

ARGS ?=
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 30
# What tests share: an engine and a model prepared once, outside the checkout, never the user's own home.
WERK_TEST_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/werk-test
JOBS := $(shell nproc 2>/dev/null || echo 2)

WERK := build/release/werk
TEST_ENV := WERK_HOME='$(WERK_TEST_CACHE)/home' WERK_TEST_SDKS='$(WERK_TEST_CACHE)/sdk' \
            WERK_TEST_WORKERS='$(WERK_TEST_CACHE)/workers' \
            WERK_TEST_VLLM='$(WERK_TEST_CACHE)/vllm' \
            WERK_TEST_CLAUDE_CODE='$(WERK_TEST_CACHE)/claude-code'
CTEST := ctest --output-on-failure --no-tests=error --parallel $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help build serve test test-fast test-engines bench soak asan tsan fuzz tidy format install clean \
        test-home setup-build setup-test setup-bench setup-fuzz setup-format
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: build/release/build.ninja ## install what the build needs, then build build/release/werk
	cmake --build build/release --target werk

serve: build ## build, bring the engine and the default model, then serve (ARGS="--port 8080")
	$(WERK) engine install llama-server --if-missing
	$(WERK) pull smollm2 --if-missing
	exec $(WERK) serve --model smollm2 $(ARGS)

test: setup-test build/release/build.ninja build/asan/build.ninja ## every test, the real engine included
	cmake --build build/release
	@$(MAKE) test-home
	cmake --build build/asan
	@mkdir -p build/test
	@printf 'subdirs("%s" "%s")\n' '$(CURDIR)/build/asan' '$(CURDIR)/build/release' > build/test/CTestTestfile.cmake
	$(TEST_ENV) $(CTEST) --test-dir build/test

test-fast: setup-test build/asan/build.ninja ## every test that needs no real engine, under the sanitizers
	cmake --build build/asan
	$(CTEST) --test-dir build/asan

test-engines: setup-test build/release/build.ninja ## the tests with the real engine
	cmake --build build/release
	@$(MAKE) test-home
	$(TEST_ENV) $(CTEST) --test-dir build/release

bench: setup-bench build/release/build.ninja ## measure (ARGS names single benchmarks); results in bench/results
	cmake --build build/release
	@$(MAKE) test-home
	$(TEST_ENV) bench/run $(ARGS)

soak: setup-test build/release/build.ninja ## four callers, kills and unloads for SOAK_SECONDS (1800); SOAK_SEED repeats a run
	cmake --build build/release --target werk_soak
	build/release/tests/soak/werk_soak

asan: build/asan/build.ninja ## build everything with the address and undefined behaviour sanitizers
	cmake --build build/asan

tsan: build/tsan/build.ninja ## test the modules that have threads under the thread sanitizer
	cmake --build build/tsan --target werk_async_test werk_base_test
	$(CTEST) --test-dir build/tsan --tests-regex '^(async|base)$$'

fuzz: setup-fuzz build/fuzz/build.ninja ## run each fuzzer for FUZZ_SECONDS (30)
	cmake --build build/fuzz --target tests/fuzz/all
	tools/fuzz build/fuzz/tests/fuzz $(FUZZ_SECONDS)

tidy: ## check the house rules and the include law
	@tools/tidy
	@tools/check_layers

format: setup-format ## lay out the C++ files you changed (FILES=...)
	clang-format-14 -i $(or $(FILES),$$(git diff --name-only --diff-filter=d HEAD -- '*.cpp' '*.hpp'))

install: build ## copy the program and its documents below PREFIX (/usr/local)
	cmake --install build/release --prefix '$(PREFIX)'

clean: ## remove everything that was built here
	rm -rf build

# The engine and the model of the tests, by the product's own commands.
test-home: build
	$(TEST_ENV) $(WERK) engine install llama-server --if-missing
	$(TEST_ENV) $(WERK) pull smollm2 --if-missing
	tests/e2e/sdk/prepare '$(WERK_TEST_CACHE)/sdk'
	tests/e2e/sdk/prepare_claude_code '$(WERK_TEST_CACHE)/claude-code' '$(WERK_TEST_CACHE)/sdk'
	$(TEST_ENV) tests/workers/prepare '$(WERK_TEST_CACHE)/workers'
	tests/vllm/prepare '$(WERK_TEST_CACHE)/vllm'

# Ninja configures again by itself when a CMake file changes; a changed preset it does not see.
build/%/build.ninja: CMakePresets.json | setup-build
	cmake --preset $*
	@touch $@

setup-build:
	@tools/setup
setup-test setup-bench setup-fuzz setup-format: setup-%:
	@tools/setup $*
