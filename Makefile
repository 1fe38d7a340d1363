.PHONY: check test slow record perf

check:  ## format, lint, strict types, house rules
	ruff format --check .
	ruff check .
	pyright
	pytest tests/test_house.py

test:  ## the tests that take seconds
	pytest

slow:  ## the tests that take minutes
	pytest -m slow

record:  ## write inline snapshots anew, to be read before they are committed
	pytest --inline-snapshot=create,fix

perf:  ## timings, never a verdict
	for script in perf/*.py; do echo "== $$script"; python $$script; done
