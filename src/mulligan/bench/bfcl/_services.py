"""Runs in the sandbox: performs calls on BFCL's simulated services, or has its checker judge them.

The request on standard input is JSON: "wheels" (paths) and "items". An item has "entry", and either "calls" (steps of
calls: the answer is the results of the last step) or "turns" with "truth" (the answer is a verdict). Each answer is a
line of JSON.
"""

import contextlib
import importlib
import json
import sys
from collections.abc import Mapping
from typing import Any

_PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval"


def main() -> None:
    request = json.load(sys.stdin)
    sys.path[:0] = request["wheels"]
    for number, item in enumerate(request["items"]):
        owner = f"owner{number}"
        with contextlib.redirect_stdout(sys.stderr):
            answer: Any = judge(item, owner) if "turns" in item else perform(item, owner)
        sys.stdout.write(f"{json.dumps(answer)}\n")


def perform(item: Mapping[str, Any], owner: str) -> list[str]:
    """The results of the last step.

    owner: the prefix of the variables in which BFCL keeps the services, so that each owner starts with new ones.
    """
    execute = importlib.import_module(f"{_PACKAGE}.multi_turn_utils").execute_multi_turn_func_call
    entry, results = item["entry"], list[str]()
    for calls in item["calls"]:
        results, _ = execute(
            func_call_list=calls,
            initial_config=entry["initial_config"],
            involved_classes=entry["involved_classes"],
            model_name=owner,
            test_entry_id=entry["id"],
            long_context="long_context" in entry["id"],
        )
    return results


def judge(item: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The checker's verdict on all turns, and whether the first turn alone is right."""
    check = importlib.import_module(f"{_PACKAGE}.multi_turn_checker").multi_turn_checker
    entry, turns, truth = item["entry"], item["turns"], item["truth"]
    category = entry["id"].rsplit("_", 1)[0]
    first = len(turns) > 0 and check(turns[:1], truth[:1], entry, category, f"{owner}_first")["valid"]
    if len(turns) != len(truth):
        return {"valid": False, "first": first, "text": f"{len(turns)} of {len(truth)} turns were completed"}
    verdict = check(turns, truth, entry, category, f"{owner}_all")
    return {"valid": verdict["valid"], "first": first, "text": verdict.get("error_message", "")}


if __name__ == "__main__":
    main()
