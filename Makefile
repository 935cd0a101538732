# make run          builds the program and imports the bundled samples
# make serve        builds the page and the program, and serves the page and the HTTP API
# make orders       builds and runs the second application, see docs/your-own-saga.md
# make operate-orders  serves the page for the operators of the second application
# make test         runs all tests, with the real servers that some of them require
# make lint         checks formatting, clippy, documentation, dependencies and the deployment's template
# make prove        runs the long proofs for hours: more schedules, more searches, outages, fuzzing
# make build        builds the functions, with a zip and a bill of materials for each
# make test-deploy  deploys them to a substitute for AWS, and imports a file

CARGO ?= cargo
SERVICES := python3 infra/services.py
TOOLS := python3 infra/tools.py
PAGE := infra/page
PAGE_TESTS := tests/page
NPM_CI := npm ci --ignore-scripts --no-audit --no-fund --silent
# The processor of the functions: arm64 or x86_64.
ARCHITECTURE ?= arm64
# Removes the paths of this machine from the programs, so that builds are reproducible.
REMAP := --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo --remap-path-prefix=$(CURDIR)=/source
# A panic unwinds, so that it fails only its own message (decision 16).
FOR_LAMBDA := RUSTFLAGS="$(REMAP)" CARGO_PROFILE_RELEASE_OPT_LEVEL=z CARGO_PROFILE_RELEASE_LTO=fat
SAMPLES := $(wildcard tests/samples/*.ris tests/samples/*.nbib tests/samples/*.xml tests/samples/*.csv tests/samples/*.tsv)
# Messages of earlier versions, except those that the engine sends to itself.
SENT := $(filter-out %/settle-session.json %/settle-session-later.json,$(wildcard tests/fixtures/v1/messages/*.json))
# The crates that decide, which must not depend on a crate that performs.
PURE := messages dedup outbox saga steps contracts
# The words of the application, which none of them may contain. The exception is the name of a stored field.
APPLICATION := search
STORED_NAME := rename = "search_id"
IMPURE := tokio|mongodb|bson|rusqlite|libsqlite3-sys|hyper|aws-[a-z0-9-]*|aws_[a-z0-9_]*|lambda_[a-z_]*
PYTHON := infra tests/compare
OTHER_TLS := ring|openssl-sys|native-tls|s2n-tls|schannel|security-framework
# The whole workspace with all adapters. All commands with these options share their artifacts, and so does a build of
# only the functions with their feature `embedded` (infra/same-build).
EVERYTHING := --workspace --features cli/services,functions/embedded
DEV := $(or $(CARGO_TARGET_DIR),target)/debug/dev
# The variables that `cargo clippy -- -D warnings` sets. With them, documentation is built from the libraries that clippy
# has checked. Without them, each library is checked again.
AFTER_CLIPPY = RUSTC_WORKSPACE_WRAPPER="$$(rustc --print sysroot)/bin/clippy-driver" \
	CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# Builds all programs, including the functions, and no tests.
PROGRAMS := $(CARGO) build $(EVERYTHING) --locked --quiet --bins
# The first seed of the simulator's new schedules, which changes every day.
export PROOF_SEED ?= $(shell date -u +%Y%m%d)000000
# The crates of the search import, and the adapters and runners that other applications use without them.
SEARCH_CRATES := archives|duplicates|http-api|imports|references|service|writers
FOR_ANY := embedded mongo dynamo backend operate local aws lambda simulation model onceward
# The crates for other teams. The embedded stores have the search's ports as a feature, so its crates are packaged as well.
PACKAGED := $(PURE) $(FOR_ANY) system-host telemetry lambda-host system-tools imports references archives duplicates writers
# Crates that the users' program must not depend on without its feature `services`.
SERVICES_ONLY := aws-[a-z0-9-]*|aws_[a-z0-9_]*|mongodb|lambda_[a-z_]*|rustls|hyper-rustls|reqwest
# Crates that the functions must not depend on without their feature `embedded`.
EMBEDDED_ONLY := embedded|rusqlite|libsqlite3-sys|zstd|zstd-sys

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E "s/:.*## /$$(printf '\t')/" | expand -t 16

.PHONY: build
build: ## Build the functions for Lambda, with a zip and a bill of materials for each, and print their sizes
	@$(FOR_LAMBDA) $(TOOLS) run sam cargo-lambda -- python3 infra/build.py $(ARCHITECTURE)

.PHONY: run
run: ## Build the program, import the bundled samples, and show the result
	$(CARGO) build --package cli --locked
	target/debug/search-import import $(SAMPLES) --search-name "Bundled samples"

.PHONY: serve
serve: page ## Build the page and the program, and serve the page and the HTTP API
	$(CARGO) build --package cli --locked
	target/debug/search-import serve

# Installs the packages of an npm lock, once for each lock.
%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && $(NPM_CI)
	@touch $@

.PHONY: page
page: $(PAGE)/node_modules/.package-lock.json ## Build the page that the program embeds
	cd $(PAGE) && npm run --silent build

.PHONY: lint-page
lint-page: $(PAGE)/node_modules/.package-lock.json ## Check the types of the page against the description of the API
	cd $(PAGE) && npm run --silent check

.PHONY: test-page
test-page: page $(PAGE_TESTS)/node_modules/.package-lock.json ## Test the page in a browser, against the program
	$(PROGRAMS)
	cd $(PAGE_TESTS) && npm run --silent test

.PHONY: test-api
test-api: ## Compare the HTTP API with its description, by a generated client and generated requests
	$(CARGO) build --package cli --locked
	@$(TOOLS) run openapi-client -- python infra/generated_client.py target/debug/search-import
	@$(TOOLS) run schemathesis -- python3 infra/api_conformance.py target/debug/search-import

.PHONY: measure-page
measure-page: page $(PAGE_TESTS)/node_modules/.package-lock.json ## Measure the figures of docs/page.md
	$(CARGO) build --package cli --locked
	cd $(PAGE_TESTS) && npm run --silent measure

.PHONY: orders
orders: ## Build and run the second application, orders on SQLite (see docs/your-own-saga.md)
	$(CARGO) build --package orders --locked
	target/debug/orders --duplicate 3

# The data directory of the second application.
ORDERS := $(or $(CARGO_TARGET_DIR),target)/orders

.PHONY: operate-orders
operate-orders: page ## Place a few orders, and serve the page for their operators
	$(CARGO) build --package orders --features tools --locked
	target/debug/orders --unpaid 3 --data-dir $(ORDERS)
	target/debug/orders-tools operate serve --data-dir $(ORDERS) --page $(PAGE)/dist

# The arguments of nextest, with the profile in .config/nextest.toml. Without nextest, cargo runs the tests without time limits.
PROFILE ?= default
# The tests to run, as a filter of nextest such as `package(saga)`; all if it is empty.
TESTS ?=
NEXTEST := $(CARGO) nextest run $(EVERYTHING) --locked --profile $(PROFILE) $(if $(TESTS),--filterset '$(TESTS)')

.PHONY: test
test: ## Run all tests, and start the required servers unless they are running
	@echo "fresh schedules begin at seed $(PROOF_SEED); to repeat them: make test PROOF_SEED=$(PROOF_SEED)"
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		$(SERVICES) run -- $(NEXTEST) --no-fail-fast; \
	else \
		$(SERVICES) run -- $(CARGO) test $(EVERYTHING) --locked --no-fail-fast $(if $(filter deep,$(PROFILE)),,-- --skip deep::); \
	fi
# The examples of the documentation, among them mistakes that must not compile.
	@$(CARGO) test --doc $(EVERYTHING) --locked --quiet

.PHONY: seeds
seeds: ## Record the seeds that find the planted defects, after a change of the simulator
	UPDATE=1 $(CARGO) test $(EVERYTHING) --locked --quiet --test simulation -- planted_defects

.PHONY: prove
prove: page ## Run the long proofs, which take hours, and record their results in docs/measured/proof.json
	@python3 infra/prove.py

# The name of the application's stack, whose parameters are in config/STACK.toml.
STACK ?= search-import-dev
# Neither make nor a shell interprets the values of these variables.
override MONGODB := $(value MONGODB)
override PARAMETERS := $(value PARAMETERS)
DEPLOY := $(TOOLS) run sam -- python infra/deploy.py $(STACK)
export MONGODB PARAMETERS

.aws-sam/build/template.yaml:
	@$(MAKE) --no-print-directory build

.PHONY: deploy
deploy: .aws-sam/build/template.yaml ## Deploy the built functions as STACK; the first time: make deploy MONGODB=… (docs/deploy.md)
	@$(DEPLOY)

.PHONY: review
review: .aws-sam/build/template.yaml ## Show the changes of a deployment without executing them
	@$(DEPLOY) --review

.PHONY: deploy-sign-in
deploy-sign-in: ## Deploy a user pool for the page of STACK
	@$(DEPLOY) --part sign-in

.PHONY: deploy-page
deploy-page: page ## Deploy the page of STACK, and upload its files
	@$(DEPLOY) --part page
	@$(TOOLS) run sam -- python infra/deploy_page.py $(STACK)

.PHONY: openapi
openapi: ## Generate docs/openapi.json, docs/operator-api.json and docs/messages.schema.json from the code
	UPDATE=1 $(CARGO) test $(EVERYTHING) --locked --quiet --test events -- --exact openapi::committed_descriptions_are_current

.PHONY: test-deploy
test-deploy: page ## Deploy the template, with the functions built for tests, to a substitute for AWS, and import a file
	$(PROGRAMS)
	@$(SERVICES) run -- $(TOOLS) run sam $(if $(filter sam,$(FUNCTIONS)),cargo-lambda) -- python infra/deployment.py

.PHONY: services
services: ## Start the servers that tests need, and leave them running
	@$(SERVICES) up

.PHONY: services-stop
services-stop: ## Stop these servers
	@$(SERVICES) down

# cargo lambda, which is installed if necessary.
LAMBDA := $(TOOLS) run cargo-lambda -- $(CARGO) lambda
# The address of the functions of `make watch`.
WATCH_PORT ?= 9000
AT_WATCH := --invoke-address 127.0.0.1 --invoke-port $(WATCH_PORT)
# The files for other commands: the settings of `make watch`, and the data of the embedded backend.
WATCHED := target/local-lambda
# Writes the settings: those of `make services` if it runs, otherwise of the embedded backend. The claim is the caller's.
# A failing command ends the recipe, unlike in `eval "$$(...)"`.
define WRITE_SETTINGS
	mkdir -p $(WATCHED) && { \
		if [ "$(BACKEND)" != embedded ] && services=$$($(SERVICES) env 2>/dev/null); then \
			eval "$$services" && made=$$($(DEV) provision) && printf '%s\n%s\n' "$$services" "$$made" && \
			echo "the functions work on the servers of make services" >&2; \
		else \
			echo "export SEARCH_IMPORT_BACKEND=embedded" && \
			echo "export SEARCH_IMPORT_DATA_DIR='$${SEARCH_IMPORT_DATA_DIR:-$(CURDIR)/$(WATCHED)/data}'" && \
			echo "the functions work on SQLite and a folder" >&2; \
		fi && \
		echo "export SEARCH_IMPORT_PROJECTS_CLAIM='$$SEARCH_IMPORT_PROJECTS_CLAIM'"; \
	} > $(WATCHED)/settings
endef
READ_SETTINGS = test -f $(WATCHED)/settings || { echo "there is nothing to work with: make watch first"; exit 2; }; \
	. ./$(WATCHED)/settings

.PHONY: watch
watch: ## Run the functions under cargo lambda, and reload them on changes (see docs/local-lambda.md)
	$(PROGRAMS)
	@$(WRITE_SETTINGS)
	@. ./$(WATCHED)/settings && $(LAMBDA) watch $(AT_WATCH)

.PHONY: pump
pump: ## Deliver queues and the schedule to the functions of `make watch`
	@$(READ_SETTINGS) && $(DEV) pump --functions http://127.0.0.1:$(WATCH_PORT)

.PHONY: invoke
invoke: ## Invoke one function of `make watch`: make invoke EVENT=tests/events/s3-put.json FUNCTION=notify-upload
	@test -n "$(EVENT)" || { echo "EVENT names the file with the event, such as tests/events/s3-put.json"; exit 2; }
	@$(READ_SETTINGS) && $(DEV) sample $(EVENT) --prepared $(WATCHED)/event.json && \
		$(LAMBDA) invoke $(or $(FUNCTION),$(call function-of,$(notdir $(EVENT)))) \
			$(AT_WATCH) --data-file $(WATCHED)/event.json > $(WATCHED)/answer.json && \
		cat $(WATCHED)/answer.json$(if $(FUNCTION),, && \
		$(DEV) sample $(EVENT) --prepared $(WATCHED)/event.json --answer $(WATCHED)/answer.json)

.PHONY: test-local-lambda
test-local-lambda: ## Run the commands of docs/local-lambda.md
	$(PROGRAMS)
	@$(SERVICES) run -- python3 infra/local_lambda.py

# The function for each type of sample event.
function-of = $(strip $(if $(filter s3-% sqs-uploads-%,$1),notify-upload)$(if $(filter sqs-saga-%,$1),run-saga)$(if \
	$(filter sqs-parse-%,$1),parse-references)$(if $(filter sqs-control-% schedule%,$1),dispatch-outbox)$(if \
	$(filter sqs-faults-%,$1),report-faults)$(if $(filter http-%,$1),start-upload))

# The fastest checks come first.
LINTS := lint-format lint-language lint-pure lint-walls lint-package lint-tls lint-python lint-page lint-deny lint-template lint-code lint-deployment

.PHONY: lint
lint: ## Check formatting, lints, documentation, dependencies and the deployment's template
	@$(MAKE) --no-print-directory $(LINTS)

.PHONY: lint-format
lint-format: ## Check the formatting of the Rust
	$(CARGO) fmt --all --check

.PHONY: lint-language
lint-language: ## Check the language of comments, documents, messages and commit subjects
	@python3 infra/language.py

# `.ci/run` does the same while it compiles.
.PHONY: lint-code
lint-code: ## Run clippy, and build the documentation of the code
	$(CARGO) clippy $(EVERYTHING) --all-targets --locked --quiet -- -D warnings
	$(AFTER_CLIPPY) RUSTDOCFLAGS="-D warnings" $(CARGO) doc $(EVERYTHING) --no-deps --locked --quiet

.PHONY: lint-tls
lint-tls: ## Prove that the functions have one TLS stack: rustls, with aws-lc
	@tree=$$($(CARGO) tree --locked --package functions --features lambda --edges normal,build --prefix none) || exit 1; \
		if others=$$(printf '%s\n' "$$tree" | grep -E '^($(OTHER_TLS)) '); then \
			echo "the functions have a second TLS stack:"; echo "$$others"; exit 1; fi; \
		echo "functions: $$(printf '%s\n' "$$tree" | sed -E 's/ \(.*//' | grep -E '^(rustls|aws-lc-rs) ' | sort -u | paste -sd ' ' -)"

.PHONY: lint-deny
lint-deny: ## Check licences, sources, banned and duplicate crates, and known vulnerabilities (see docs/security.md)
	@$(TOOLS) run cargo-deny -- python3 infra/deny.py

TEMPLATES := template.yaml $(wildcard infra/templates/*.yaml)

.PHONY: lint-template
lint-template: ## Check the deployment's template against the rules of AWS, and messages against their schemas
	$(TOOLS) run cfn-lint -- cfn-lint --regions us-east-1 eu-central-1 -- $(TEMPLATES)
	$(TOOLS) run checkov -- checkov --config-file .checkov.yaml --file $(TEMPLATES)
	$(TOOLS) run check-jsonschema -- check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(TOOLS) run check-jsonschema -- check-jsonschema --schemafile docs/messages.schema.json $(SENT)

.PHONY: lint-deployment
lint-deployment: ## Check the deployment's template against the code
	$(PROGRAMS)
	$(DEV) check-template

.PHONY: lint-python
lint-python: ## Check the formatting, lints and types of the Python, and test it
	@$(TOOLS) run ruff mypy -- sh -ec 'ruff check --quiet $(PYTHON); ruff format --quiet --check $(PYTHON); mypy'
	@python3 -m unittest discover --quiet --start-directory infra/scripts/tests --top-level-directory infra
	@python3 -m unittest discover --quiet --start-directory tests/compare

.PHONY: lint-pure
lint-pure: ## Prove that the pure crates depend on neither a runtime nor a store nor an application
	@for crate in $(PURE); do \
		tree=$$($(CARGO) tree --locked --package $$crate --edges normal,build --prefix none) || exit 1; \
		impure=$$(printf '%s\n' "$$tree" | grep -E '^($(IMPURE)) ' || true); \
		if [ -n "$$impure" ]; then echo "$$crate is not pure, it depends on:"; echo "$$impure"; exit 1; fi; \
		echo "$$crate: $$(printf '%s\n' "$$tree" | sort -u | wc -l) crates, neither a runtime nor a store"; \
		if named=$$(grep -rni --include='*.rs' '$(APPLICATION)' shared/engine/$$crate | grep -v '$(STORED_NAME)'); then \
			echo "$$crate is for any application, and names one:"; echo "$$named"; exit 1; fi; \
	done

.PHONY: lint-walls
lint-walls: ## Prove that programs and adapters do not contain certain crates, and that builds share their artifacts
	@tree=$$($(CARGO) tree --locked --package cli --edges normal --prefix none) || exit 1; \
		if services=$$(printf '%s\n' "$$tree" | grep -E '^($(SERVICES_ONLY)) '); then \
			echo "search-import needs, without its feature services:"; printf '%s\n' "$$services" | sort -u; exit 1; fi; \
		if stores=$$($(CARGO) tree --locked --package functions --edges normal --prefix none | grep -E '^($(EMBEDDED_ONLY)) '); then \
			echo "the functions need, without their feature embedded:"; printf '%s\n' "$$stores" | sort -u; exit 1; fi; \
		echo "search-import: $$(printf '%s\n' "$$tree" | sed -E 's/ \(.*//' | sort -u | wc -l) crates, none of a service"
	@tree=$$($(CARGO) tree --locked --package onceward --features env-dynamodb,lambda --edges normal --prefix none) || exit 1; \
		if driver=$$(printf '%s\n' "$$tree" | grep -E '^(bson|mongo|mongodb|aws-sdk-secretsmanager) v'); then \
			echo "the functions of a system on DynamoDB need:"; printf '%s\n' "$$driver" | sort -u; exit 1; fi; \
		echo "functions on DynamoDB: $$(printf '%s\n' "$$tree" | sed -E 's/ \(.*//' | sort -u | wc -l) crates, no driver of MongoDB"
	@for crate in $(FOR_ANY); do \
		all=; case $$crate in backend) all="--features embedded,mongo";; onceward) all="--features contracts,dynamo,env-mongodb,local,lambda,simulation,model,tools";; esac; \
		tree=$$($(CARGO) tree --locked --package $$crate --no-default-features $$all --edges normal --prefix none) || exit 1; \
		if search=$$(printf '%s\n' "$$tree" | grep -E '^($(SEARCH_CRATES)) v'); then \
			echo "$$crate needs, without its feature search:"; printf '%s\n' "$$search" | sort -u; exit 1; fi; \
	done; echo "$(FOR_ANY): no crate of the search import"
	@features() { $(CARGO) tree --locked --edges normal,build --prefix none --format '{p} {f}' "$$@" | sed 's/ (\*)$$//' | sort -u; }; \
		all=$$(features $(EVERYTHING)) && alone=$$(features --package functions --features embedded) || exit 1; \
		if others=$$(printf '%s\n' "$$alone" | grep -vxF "$$all"); then \
			echo "a build of the functions alone needs other features than infra/same-build states:"; echo "$$others"; exit 1; fi; \
		echo "functions alone: built from the artifacts of the workspace"

.PHONY: lint-package
lint-package: ## Package the crates of the engine and its adapters for a registry
	$(CARGO) package $(PACKAGED:%=--package %) --locked --allow-dirty --no-verify --quiet

.PHONY: bench-parse
bench-parse: ## Measure the speed and the memory of reading reference files
	$(CARGO) build --package dev --release --locked
	target/release/dev bench parse

.PHONY: bench-import
bench-import: page ## Measure the whole import of a large file: time, memory and disk
	$(CARGO) build --package dev --package cli --release --locked
	target/release/dev bench import

.PHONY: bench-words
bench-words: page ## Measure the search for words: its index, and the time of queries
	$(CARGO) build --package cli --release --locked
	infra/words.py target/release/search-import

.PHONY: bench-exports
bench-exports: page ## Measure exports in each format, compared with reading the same studies
	$(CARGO) build --package cli --release --locked
	infra/export_speed.py target/release/search-import

.PHONY: compare-readers
compare-readers: ## Compare the readers with those of other projects, installed below target/
	$(CARGO) build --package dev --release --locked
	$(TOOLS) run readers -- python tests/compare/compare.py target/release/dev

.PHONY: compare-duplicates
compare-duplicates: page ## Compare the marking of duplicates with another project's, installed below target/
	$(CARGO) build --package cli --release --locked
	$(TOOLS) run duplicates -- python tests/compare/duplicates.py target/release/search-import

.PHONY: compare-exports
compare-exports: ## Read exports with the readers of other projects, installed below target/, and compare them with the stored studies
	$(CARGO) build --package cli --locked
	$(TOOLS) run readers -- python tests/compare/exports.py target/debug/search-import

.PHONY: compare-engines
compare-engines: ## Compare the engine with others, installed below target/, on one workload; OPTIONS="--rounds 1 --sagas 200"
	$(CARGO) build --package dev --release --locked
	$(TOOLS) run engines -- python infra/engines.py target/release/dev $(OPTIONS)

.PHONY: compare-versions
compare-versions: ## Compare this version with the last tag, or BASE=REVISION, and fail if a figure is more than 15 % slower
	$(CARGO) build --package dev --release --locked
	python3 infra/versions.py target/release/dev $(if $(BASE),--base $(BASE)) $(OPTIONS)

.PHONY: diagram
diagram: ## Generate the diagram and the table of docs/states.md from the code
	$(CARGO) build --package dev --locked
	python3 infra/diagram.py target/debug/dev docs/states.md

.PHONY: clean
clean: ## Remove built and imported files
	rm -rf target .search-import
