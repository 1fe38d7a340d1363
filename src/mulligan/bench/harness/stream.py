"""Streams: the same cases for several arms, in several orders. Each arm has a bank that grows from case to case.

An arm is a file with settings of [memory]. Each arm in each order is a benchmark run of its own (a leg), with a bank of
its own; all legs have the same cases and seeds, and an equal request to a model is answered once.
"""

from __future__ import annotations

import random
import secrets
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast

from mulligan.app.config import Config, load
from mulligan.app.memory_config import MemorySettings, spec_of
from mulligan.app.model_roles import Models
from mulligan.app.plugin_files import is_own
from mulligan.app.plugins import build, find, names, settings_of, short_name
from mulligan.app.recipe import read_file
from mulligan.app.session import Session, opened_store
from mulligan.bench.harness.banks import TextBank
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import STREAM, BenchOptions, choice_json, choice_of, make_plan
from mulligan.bench.harness.running import Finished, run_or_resume
from mulligan.core.benchmarks import BenchRun
from mulligan.core.codec import digest
from mulligan.core.errors import InvalidInput, JournalDiverged, UnknownName
from mulligan.core.protocols import Model, Store, TextMemory
from mulligan.core.records import Case, Episode, Json, Spec
from mulligan.core.scaling import scale_of
from mulligan.recording.leases import leased

ARMS = Path(__file__).parent.parent / "arms"
NONE = "none"
"""The arm without memory, against which gain is measured."""
CONTROLS = ("unrelated", "stale")
FOLDER = "mulligan-memory-"
"""The prefix of the names of the temporary folders in which memories keep their files."""


@dataclass(frozen=True)
class Arm:
    """memory: settings of [memory], in place of those of mulligan.toml, or of the plug-in; None: no memory. control:
    "unrelated": the bank was filled from other tasks and only recalls; "stale": it learns nothing more after the first
    phase. scale: how many trajectories of each task there are; None: one. plugin: the memory itself; "": the bank."""

    name: str
    memory: Mapping[str, Json] | None = None
    control: str = ""
    scale: str | None = None
    plugin: str = ""

    def make(self, folder: str) -> TextMemory:
        """The memory of its plug-in, which has learned nothing. folder: an empty one, for what it keeps in files.

        Raises `InvalidInput`, `UnknownName`.
        """
        spec = Spec(self.plugin, self.memory or {})
        keeps = "folder" in settings_of(find("memories", self.plugin))
        memory = build("memories", spec.with_settings(folder=folder) if keeps else spec, {})
        if not hasattr(memory, "learn"):
            raise InvalidInput(f"The memory {self.plugin!r} has no method learn(episode).")
        return memory


@dataclass(frozen=True)
class StreamChoice:
    """base: of all legs. unrelated: the benchmark or file of tasks that fills the banks of that control."""

    base: BenchOptions
    arms: tuple[Arm, ...]
    orders: int = 5
    unrelated: str | None = None

    def __post_init__(self) -> None:
        if self.orders < 1:
            raise InvalidInput(f"orders must be at least 1, not {self.orders}.")
        names = [arm.name for arm in self.arms]
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(f"The arm {name!r} appears twice: give each its own name.")
        if NONE not in names:
            raise InvalidInput(f"Gain is measured against an arm without memory: add {NONE!r} to the arms.")

    def to_json(self) -> dict[str, Json]:
        arms: list[Json] = [cast(Json, asdict(arm)) for arm in self.arms]
        return {"base": choice_json(self.base), "arms": arms, "orders": self.orders, "unrelated": self.unrelated}

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> StreamChoice:
        arms = tuple(Arm(**arm) for arm in options["arms"])
        return cls(choice_of(options["base"]), arms, options["orders"], options["unrelated"])


@dataclass(frozen=True)
class Leg:
    """One arm in one order: a benchmark run with this id."""

    arm: Arm
    order: int
    run: str

    @property
    def label(self) -> str:
        return f"{self.arm.name}, order {self.order}"


OnLeg: TypeAlias = Callable[[Leg, int, int, Finished | None], None]
"""Called before each leg, and after it with its results; with its number and how many there are."""


@dataclass(frozen=True)
class StreamHooks:
    """Observers of a stream. on_begin: sees its record. run: those of each leg."""

    on_begin: Callable[[BenchRun], None] | None = None
    on_leg: OnLeg | None = None
    run: Hooks = field(default_factory=Hooks)


# --- arms and orders ------------------------------------------------------------------------------------------------


def shipped_arms() -> list[str]:
    return sorted([*(file.stem for file in ARMS.glob("*.toml")), *names("memories")])


def read_arm(text: str, config: Config) -> Arm:
    """The arm of this name, in this file, or of this memory. Raises `UnknownName`, `InvalidInput` with the file."""
    file = Path(text).expanduser() if text.endswith(".toml") else ARMS / f"{text}.toml"
    if not text.endswith(".toml") and not file.is_file():
        return _arm_of_plugin(text)
    try:
        table = tomllib.loads(read_file(str(file), "arm"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{file}: {error}.") from error
    for key in table:
        if key not in ("summary", "scale", "memory"):
            raise InvalidInput(f"{file}: {UnknownName('key of an arm', key, ('summary', 'scale', 'memory'))}")
    memory = table.get("memory")
    if isinstance(memory, str):
        return replace(_arm_of_plugin(memory, file.parent), name=file.stem)
    if memory is not None:
        if not isinstance(memory, dict):
            raise InvalidInput(f"{file}: memory must be a table of settings, not {memory!r}.")
        try:
            MemorySettings.of(config, memory := cast(dict[str, Json], memory))
        except InvalidInput as error:
            raise InvalidInput(f"{file}: {error}") from error
    try:
        scale = None if "scale" not in table else str(table["scale"])
        scale_of(scale)
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {error}") from error
    return Arm(file.stem, memory, scale=scale)


def _arm_of_plugin(text: str, folder: Path | None = None) -> Arm:
    """The arm of a memory: a shipped one, `./mine.py` in a folder (the working folder), `package.module:Class`.

    Raises `UnknownName`, `InvalidInput` also for a memory that cannot be made, before a model is called.
    """
    if not is_own(text) and text.partition(":")[0] not in names("memories"):
        raise UnknownName("arm", text, shipped_arms(), "One of your own: ./mine.toml, or a memory: ./mine.py.")
    spec = spec_of("memories", text, folder)
    arm = Arm(short_name(spec.name), spec.settings, plugin=spec.name)
    with TemporaryDirectory(prefix=FOLDER) as files:
        arm.make(files)
    return arm


def with_controls(arms: Sequence[Arm], controls: Sequence[str]) -> tuple[Arm, ...]:
    """The arms, and for each one with memory one more for each control."""
    for control in controls:
        if control not in CONTROLS:
            raise UnknownName("control", control, CONTROLS)
    extra = [
        replace(arm, name=f"{arm.name}-{control}", control=control)
        for control in dict.fromkeys(controls)
        for arm in arms
        if arm.memory is not None
    ]
    return (*arms, *extra)


def in_order(cases: Sequence[Case], seed: int, order: int) -> list[Case]:
    """The cases in the order of this number; 1 is the given one. Cases are mixed within their phase alone, and one that
    announces a change stays the first of its phase."""
    if order == 1:
        return list(cases)
    found, chance = list[Case](), random.Random(f"{seed} order {order}")
    for _, phase in groupby(cases, key=lambda case: case.phase):
        mixed = list(phase)
        announced = [mixed.pop(0)] if "change" in mixed[0].task.inputs else []
        chance.shuffle(mixed)
        found += [*announced, *mixed]
    return found


def legs_of(stream: str, choice: StreamChoice) -> list[Leg]:
    """The legs as they are run: order by order, the arms of each in an order drawn from the seed."""
    found = list[Leg]()
    for order in range(1, choice.orders + 1):
        arms = list(choice.arms)
        random.Random(f"{choice.base.seed} arms {order}").shuffle(arms)
        found += [Leg(arm, order, f"{stream}-{arm.name}-{order}") for arm in arms]
    return found


# --- running --------------------------------------------------------------------------------------------------------


async def run_stream(
    benchmark: str,
    *,
    arms: Sequence[str | Arm] = (NONE, "lessons"),
    orders: int = 5,
    controls: Sequence[str] = (),
    unrelated: str | None = None,
    model: str | Model | None = None,
    store: Store | None = None,
    hooks: StreamHooks = StreamHooks(),
    **options: Any,
) -> BenchRun:
    """Run the cases of a benchmark as a stream, and return its record; `bench.report.stream` reads what came of it.

    Args:
        benchmark: a name, `name:argument`, or a file of tasks.
        arms: names of shipped arms, or files.
        orders: permutations of the cases, the given one included.
        controls: "unrelated", "stale": a further arm for each arm with memory.
        unrelated: the benchmark or file of tasks that fills the banks of that control.
        options: the fields of `BenchOptions` that no arm sets, such as method, trials, limit and seed.

    Raises:
        InvalidInput: an option cannot be used; no model was called yet.
    """
    config = load()
    models = Models(config)
    given = [arm if isinstance(arm, Arm) else read_arm(arm, config) for arm in arms]
    base = BenchOptions(benchmark, model=models.name(model), **options, reuse=True)
    choice = StreamChoice(base, with_controls(given, controls), orders, unrelated)
    work = _Stream(config, models, choice, hooks)
    async with opened_store(store, config) as at:
        run = work.record()
        await at.benches.begin(run)
        return await work.through(at, run)


async def resume_stream(
    id: str,
    *,
    model: Model | None = None,
    store: Store | None = None,
    hooks: StreamHooks = StreamHooks(),
) -> BenchRun:
    """Resume a stream that was interrupted. What has ended stays; cases that ended with an error run again.

    Args:
        id: of the stream.
        model: again, where it was given as an object.
    """
    config = load()
    models = Models(config)
    models.name(model)
    async with opened_store(store, config) as at:
        run = await stream_record(at, id)
        choice = StreamChoice.of(run.options)
        work = _Stream(config, models, choice, hooks)
        if work.record().rests_on != run.rests_on:
            raise JournalDiverged(["the cases"], of=f"the stream {run.id}", otherwise="begin a new one")
        return await work.through(at, run)


async def stream_record(store: Store, id: str) -> BenchRun:
    """The record of a stream. Raises `NotFound`, `InvalidInput` for another run."""
    run = await store.benches.run(id)
    if not run.benchmark.startswith(STREAM):
        raise InvalidInput(f"{run.id} is not a stream but a single run: mulligan bench run --resume {run.id}")
    return run


@dataclass
class _Stream:
    config: Config
    models: Models
    choice: StreamChoice
    hooks: StreamHooks

    def record(self) -> BenchRun:
        """A new record of the stream. Raises `InvalidInput` for what cannot work."""
        sandbox = Session(self.config, self.models).sandbox(self.choice.base.sandbox)
        plan = make_plan(self.choice.base, self.config, sandbox)
        self.cases = plan.cases
        plan.recipe(self.cases[0], "")
        id = f"s{secrets.token_hex(4)}"
        controls = {arm.control for arm in self.choice.arms}
        if "stale" in controls and self.first_phase == len(self.cases):
            raise InvalidInput("The control 'stale' needs a change in the middle of the stream, and no case has one.")
        if "unrelated" in controls:
            if self.choice.unrelated is None:
                raise InvalidInput("The control 'unrelated' needs other tasks to learn from: name them.")
            make_plan(self._filling(self.choice.arms[0], ""), self.config, sandbox)
        rests_on: dict[str, Json] = {"the cases": digest([[case.id, case.task.prompt] for case in self.cases])}
        labels = tuple(leg.label for leg in legs_of(id, self.choice))
        benchmark = f"{STREAM}{self.choice.base.benchmark}"
        return BenchRun(id, benchmark, round(time.time(), 3), self.choice.to_json(), labels, rests_on)

    @property
    def first_phase(self) -> int:
        """How many cases come before the first change."""
        return sum(case.phase == self.cases[0].phase for case in self.cases)

    async def through(self, store: Store, run: BenchRun) -> BenchRun:
        if self.hooks.on_begin:
            self.hooks.on_begin(run)
        legs = legs_of(run.id, self.choice)
        async with leased(store.benches, run.id):
            for number, leg in enumerate(legs, 1):
                if self.hooks.on_leg:
                    self.hooks.on_leg(leg, number, len(legs), None)
                finished = await self._leg(store, run, leg)
                if self.hooks.on_leg:
                    self.hooks.on_leg(leg, number, len(legs), finished)
        return run

    async def _leg(self, store: Store, run: BenchRun, leg: Leg) -> Finished:
        bank = f"{run.id}-{leg.arm.name}-filling" if leg.arm.control == "unrelated" else leg.run

        async def through(id: str, choice: BenchOptions, memory: TextBank | None) -> Finished:
            given: dict[str, Any] = {"store": store, "models": self.models, "config": self.config, "bank": memory}
            return await run_or_resume(id, choice, hooks=self.hooks.run, **given)

        with TemporaryDirectory(prefix=FOLDER) as folder:
            make = partial(leg.arm.make, folder)
            memory = TextBank(make, partial(self._learned_by, store, leg.arm, bank)) if leg.arm.plugin else None
            if leg.arm.control == "unrelated":
                await through(bank, self._filling(leg.arm, bank), memory)
            try:
                return await through(leg.run, self._choice(leg, bank), memory)
            finally:
                if memory:
                    await memory.close()

    async def _learned_by(self, store: Store, arm: Arm, run: str) -> Sequence[Episode]:
        """The episodes that the memory of this arm has learned from in this run, in their order."""
        results = await store.benches.results(run)
        last = self.first_phase if arm.control == "stale" else len(results)
        ended = [one for one in results if one.status != "error" and one.position <= last]
        return [await store.load(mark.episode) for one in ended for mark in one.episodes]

    def _choice(self, leg: Leg, bank: str) -> BenchOptions:
        """Of this leg, with the bank of this agent."""
        base = self.choice.base
        ids = [case.id for case in in_order(self.cases, base.seed, leg.order)]
        choice = base.changed(cases=ids, limit=None, shuffle=False, scale=leg.arm.scale or base.scale)
        if leg.arm.memory is None:
            return choice
        return choice.changed(
            memory="frozen" if leg.arm.control == "unrelated" else "online",
            agent_id=bank,
            taught=self.first_phase if leg.arm.control == "stale" else None,
            settings={**(base.settings or {}), **_of_bank(leg.arm)},
        )

    def _filling(self, arm: Arm, bank: str) -> BenchOptions:
        """Of the run over other tasks that fills the bank of this control."""
        base = self.choice.base
        assert self.choice.unrelated is not None
        return base.changed(
            benchmark=self.choice.unrelated,
            method=None,
            strategy=None,
            data=None,
            cases=(),
            memory="online",
            agent_id=bank,
            settings=_of_bank(arm),
        )


def _of_bank(arm: Arm) -> dict[str, Mapping[str, Json]]:
    """The settings of the bank that a leg of this arm opens."""
    return {} if arm.plugin else {"memory": dict(arm.memory or {})}
