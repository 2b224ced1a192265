# The few commands a person needs; each does its own set-up.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: $(shell sed -n "s/^\([a-z-]*\):.*\#\# .*/\1/p" $(firstword $(MAKEFILE_LIST)))

CABAL := source scripts/cabal-env.sh && cabal

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing (Debian: GHC, cabal, libraries, redis-server)
	@scripts/setup.sh

build: setup ## Compile everything
	@$(CABAL) build -v1 all

test: setup ## Compile and run every quick test, and the quick part of the lint: a quarter of an hour
	@scripts/test.sh

verify: setup ## Run the rest: other suites, long properties, comparisons, campaign, soak, the whole lint; ROOTS=
	@$(if $(ROOTS),ROOTS="$(ROOTS)") scripts/verify.sh

bench: setup ## Measure GET, SET and mixed on a private server and cluster
	@scripts/bench.sh suite

bench-differential: setup ## Hold our figures against those of redis-benchmark
	@scripts/bench.sh differential

bench-gate: setup ## Measure what is demanded of speed and of the program itself; fail where it is certainly missed
	@scripts/bench.sh gate

bench-pair: setup ## Measure against another revision, in pairs: REV=...; ROWS= PAIRS= SECONDS=
	@scripts/lab.sh pair --revision "$(REV)" $(if $(ROWS),--rows "$(ROWS)") $(if $(PAIRS),--pairs "$(PAIRS)") $(if $(SECONDS),--seconds "$(SECONDS)")

bench-scan: setup ## Measure a walk over ten million keys beside redis-cli --scan; ROUNDS=
	@scripts/lab.sh scan $(if $(ROUNDS),--rounds "$(ROUNDS)")

bench-value: setup ## Measure one GET of 512 MiB beside hiredis; ROUNDS=
	@scripts/lab.sh value $(if $(ROUNDS),--rounds "$(ROUNDS)")

bench-replies: setup ## Measure large replies beside hiredis, and typed commands beside raw; ROUNDS=
	@scripts/lab.sh replies $(if $(ROUNDS),--rounds "$(ROUNDS)")

bench-fanin: setup ## Measure taking messages of one channel beside hiredis; ROUNDS=
	@scripts/lab.sh fanin $(if $(ROUNDS),--rounds "$(ROUNDS)")

bench-frozen: setup ## Measure when waiting callers are back from a frozen server, by allocation area; ROUNDS=
	@scripts/lab.sh frozen $(if $(ROUNDS),--rounds "$(ROUNDS)")

bench-checks: setup ## Measure what the setting reply_checks costs; ROUNDS=
	@scripts/lab.sh checks $(if $(ROUNDS),--rounds "$(ROUNDS)")

bench-fsync: setup ## Measure SETs that wait for the disk, by the number of connections; ROUNDS=
	@scripts/lab.sh fsync $(if $(ROUNDS),--rounds "$(ROUNDS)")

bench-moving: setup ## Count the reads at replicas that miss a key while its slot moves
	@scripts/bench.sh moving

compile-cost: setup ## Say what the commands cost to compile; REV=...: of another revision
	@dev/compile-cost.sh $(REV)

coverage: setup ## Say how each command is offered, fail if one is not; writes docs/commands.md
	@$(CABAL) run -v1 redis-client:test:coverage -- write docs/commands.md

figures: ## Draw README's and docs/speed.md's tables and pictures from the raw data
	@dev/figures.py write

compare-client: setup ## Compare the libraries alone with their peers; QUICK=1: 6 minutes
	@scripts/setup.sh peers || echo "compare: some peers will be absent" >&2
	@compare/run-client.sh

compare-rest: setup ## Compare two REST services, ours and one in C#; QUICK=1: 6 minutes
	@compare/rest/run.sh

campaign: setup ## Measure what keeping the data costs, as a series on AWS did: three and a half hours; AT= goes on with one, ONLY= measures a part
	@$(if $(AT),AT="$(AT)") $(if $(ONLY),ONLY="$(ONLY)") scripts/campaign.sh

campaign-smoke: setup ## Run a whole campaign, small, and write its report
	@scripts/campaign-smoke.sh

soak: setup ## Load and faults, and the audit after them; MINUTES= (20) SEED=
	@$(if $(MINUTES),MINUTES="$(MINUTES)") $(if $(SEED),SEED="$(SEED)") scripts/soak.sh

profile: setup ## Say where a GET and the REST service spend their time, beside .NET; ROUNDS=
	@scripts/setup.sh profile
	@scripts/lab.sh profile $(if $(ROUNDS),--rounds "$(ROUNDS)")

lint: setup ## Check style and layers
	@scripts/lint.sh

format: setup ## Format every module
	@scripts/lint.sh --fix

doc: setup ## Write the Haddock pages, as Hackage wants them
	@scripts/doc.sh

dist: setup ## Make a tarball and a Debian package of the program, and the sdists of the libraries
	@scripts/setup.sh dist
	@scripts/dist.sh

clean: ## Remove what was built and measured
	@rm -rf dist-newstyle results build/pair
	@! git rev-parse --git-dir >/dev/null 2>&1 || git worktree prune
