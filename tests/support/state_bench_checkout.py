"""A small checkout in the form of STATE-Bench's repository, written for tests: two tools and three tasks.

None of its files is theirs. What Mulligan uses of their code is here in its simplest form: the names, the fields of a
task, and what is called with what.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CODE = {
    "__init__.py": "",
    "client.py": "raise ImportError('the SDK of a provider')\n",
    "domain.py": """
from state_bench.domains.travel.config import get_config


def get_domain_config(name):
    if name != "travel":
        raise ValueError(name)
    return get_config()
""",
    "schemas.py": """
import json
from dataclasses import dataclass, field


@dataclass
class TaskDefinition:
    task_id: str
    user_id: str
    now: str
    opening_message: str
    user_simulator: dict
    task_env_path: str
    state_requirements: list = field(default_factory=list)
    task_requirements: list = field(default_factory=list)
    task_type: str = ""

    @classmethod
    def load(cls, path):
        return cls(**json.loads(path.read_text()))


@dataclass
class StateDiff:
    modified: dict

    @classmethod
    def compute(cls, before, after):
        changed = {}
        for kind, records in after.items():
            for key, record in records.items():
                for name, value in record.items():
                    if before[kind][key][name] != value:
                        changed[(kind, key, name)] = value
        return cls(changed)
""",
    "env_loader.py": """
from pathlib import Path


def load_task_environment(domain, task):
    path = Path(__file__).parent.parent / task.task_env_path
    return domain.env_data_class.load(path), path
""",
    "simulator.py": """
from state_bench.client import LLMClient, PooledLLMClient


class UserSimulator:
    def __init__(self, client: LLMClient | PooledLLMClient, system_prompt: str):
        self.client, self.system_prompt = client, system_prompt

    def respond(self, conversation):
        said = "\\n".join(f"{one['role']}: {one['content']}" for one in conversation)
        messages = [{"role": "system", "content": self.system_prompt}, {"role": "user", "content": said}]
        return self.client.complete_chat(messages=messages).strip()
""",
    "scoring.py": """
from dataclasses import dataclass


@dataclass
class Scored:
    score: int
    reasoning: str


def evaluate_state_requirements(task, state_diff):
    wanted = {
        (one["entity_type"], one["record_key"], one["field"]): one["expected_value"] for one in task.state_requirements
    }
    return Scored(1, "As required.") if wanted == state_diff.modified else Scored(0, "Another state.")


class TaskRequirementsJudge:
    def __init__(self, client, prompts_dir, system_prompt):
        self.client, self.prompts_dir, self.system_prompt = client, prompts_dir, system_prompt

    def evaluate(self, task, conversation, tool_calls, state_diff):
        if not task.task_requirements:
            return Scored(1, "Nothing has to be said.")
        prompt = (self.prompts_dir / "judge_task_requirements.md").read_text() + str(task.task_requirements)
        details = self.client.complete_json(prompt=prompt, system_prompt=self.system_prompt).get("details", [])
        passed = {one["id"] for one in details if one["passed"]} == {one["id"] for one in task.task_requirements}
        return Scored(int(passed), "It was said." if passed else "It was not said.")
""",
    "domains/__init__.py": "",
    "domains/travel/__init__.py": "",
    "domains/travel/config.py": """
import copy
import json
from dataclasses import dataclass
from pathlib import Path


class Data:
    def __init__(self, bookings):
        self.bookings = bookings

    @classmethod
    def load(cls, path):
        return cls(json.loads(path.read_text())["bookings"])

    def deep_copy(self):
        return copy.deepcopy(self)


class World:
    def __init__(self, data, now):
        self.bookings = data.bookings
        self.tool_handlers = {"get_booking": self.get_booking, "cancel_booking": self.cancel_booking}

    def get_full_snapshot(self):
        return {"bookings": copy.deepcopy(self.bookings)}

    def get_booking(self, given):
        return self.bookings.get(given["booking_id"]) or {"error": "There is no such booking."}

    def cancel_booking(self, given):
        booking = self.bookings[given["booking_id"]]
        if booking["fare"] == "fixed" and not given.get("fee_accepted"):
            return {"error": f"Booking {given['booking_id']} has a fixed fare: fee_accepted is needed."}
        booking["status"] = "cancelled"
        return {"status": "cancelled"}


@dataclass
class Config:
    environment_class: type = World
    env_data_class: type = Data
    agent_system_prompt: str = "You serve {user_id}. It is {now}."
    judge_system_prompt: str = "You judge."
    prompts_dir: Path = Path(__file__).parent / "prompts"
    max_agent_turns: int = 3
    tool_schemas = [
        {"type": "function", "name": name, "description": name, "parameters": {
            "type": "object", "properties": {"booking_id": {"type": "string"}}, "required": ["booking_id"]}}
        for name in ("get_booking", "cancel_booking")
    ]

    def build_simulator_prompt(self, task, env_data, user_id):
        return f"You play {user_id}. {task.user_simulator['user_sim_context']}"

    def check_termination(self, user_response):
        return "[TASK_DONE]" in user_response


def get_config():
    return Config()
""",
    "domains/travel/prompts/judge_task_requirements.md": "Was this said? ",
}


def task(id: str, *, fare: str, wanted: bool, said: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task and its records: the customer wants the booking cancelled; wanted: whether it has to be in the end."""
    state = [{"entity_type": "bookings", "record_key": "B1", "field": "status", "expected_value": "cancelled"}]
    definition = {
        "task_id": id,
        "user_id": "user_1",
        "now": "2026-06-15T10:00:00",
        "opening_message": f"Cancel B1, please ({id}).",
        "user_simulator": {"user_sim_context": f"You want B1 cancelled ({id})."},
        "task_env_path": f"state_bench/domains/travel/task_envs/{id}.json",
        "state_requirements": state if wanted else [],
        "task_requirements": [{"id": "r1", "requirement": "names the fee"}] if said else [],
        "task_type": "cancel",
    }
    return definition, {"bookings": {"B1": {"fare": fare, "status": "booked"}}}


def write_checkout(folder: Path) -> Path:
    """Writes the checkout, with a file of training trajectories missing: those are of the learning track."""
    package = folder / "state_bench"
    for name, text in CODE.items():
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    travel = package / "domains" / "travel"
    tasks = {
        "1-free": task("1-free", fare="free", wanted=True, said=False),
        "2-fixed": task("2-fixed", fare="fixed", wanted=True, said=True),
        "3-keep": task("3-keep", fare="fixed", wanted=False, said=False),
    }
    for kind in ("tasks", "task_envs", "splits"):
        (travel / kind).mkdir()
    for id, (definition, records) in tasks.items():
        (travel / "tasks" / f"{id}.json").write_text(json.dumps(definition), encoding="utf-8")
        (travel / "task_envs" / f"{id}.json").write_text(json.dumps(records), encoding="utf-8")
    splits = {"splits": {"train": [], "test": list(tasks)}}
    (travel / "splits" / "train_test.json").write_text(json.dumps(splits), encoding="utf-8")
    return folder
