.PHONY: check test slow long record docs site perf

check:  ## format, lint, names, strict types, house rules
	ruff format --check .
	ruff check .
	python tools/names.py
	pyright
	pytest -m "" tests/test_house.py

test:  ## the tests that take seconds, on all cores; make test FILE=tests/core/test_loops.py runs one file
	pytest $(or $(FILE),-n auto)

slow:  ## the tests that take minutes, and properties with many examples; much is waiting, so more workers than cores
	pytest -m "slow or hypothesis" --durations=30 $(or $(FILE),-n 4 --dist loadfile)

long:  ## the slow tests at full length: four times as many kills, examples and hostile requests as in CI
	MULLIGAN_TEST_REPEATS=4 $(MAKE) slow

record:  ## write inline snapshots anew, to be read before they are committed
	pytest --inline-snapshot=create,fix

docs:  ## the pages of docs/formats and the list of the public API, from the code itself; tests compare them
	python tools/format_pages.py docs/formats
	python tools/public_api.py tests/public_api.txt

site:  ## docs/ and design/ as a site in build/site, which needs no network: build/site/index.html (extra docs)
	sphinx-build -W --keep-going -q -c docs -d build/doctrees . build/site

perf:  ## timings beside an older commit, never a verdict: make perf BASE=origin/main
	python perf/compare.py $(or $(BASE),origin/main)
