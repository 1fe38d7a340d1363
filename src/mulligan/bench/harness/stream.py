"""Streams: the same cases for several arms, in several orders. Each arm has a bank that grows from case to case.

An arm is a memory, or a file with settings of [memory]. Each arm in each order is a separate benchmark run (a leg) with
a separate bank. All legs have the same cases and seeds, and identical requests to a model are answered only once.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, cast

from mulligan.app.config import Config, load, parse
from mulligan.app.memory_config import MemorySettings, spec_of
from mulligan.app.model_roles import Models
from mulligan.app.plugin_files import is_own
from mulligan.app.plugins import build, find, names, settings_of, short_name
from mulligan.app.recipe import read_file
from mulligan.app.session import Session, opened_store
from mulligan.bench.harness.banks import TextBank
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import STREAM, BenchOptions, choice_json, choice_of, is_stream, make_plan
from mulligan.bench.harness.running import Finished, run_or_resume
from mulligan.core.benchmarks import BenchRun
from mulligan.core.codec import digest
from mulligan.core.errors import InvalidInput, JournalDiverged, UnknownName
from mulligan.core.protocols import Model, Store, TextMemory
from mulligan.core.records import Case, Episode, Json, Spec
from mulligan.core.scaling import scale_of
from mulligan.recording.leases import leased

ARMS = Path(__file__).parent.parent / "arms"
"""The folder of the shipped arms."""
NONE = "none"
"""The name of the arm without memory, with which the others are compared."""
CONTROLS = ("unrelated", "stale")
FOLDER = "mulligan-memory-"
"""The prefix of the temporary folders in which memories keep their files."""


@dataclass(frozen=True)
class Arm:
    """What a stream compares: a bank with these settings, a memory, or neither.

    Attributes:
        memory: settings of the memory if there is a plug-in, else of [memory], instead of those in mulligan.toml.
            None: no memory.
        control: "unrelated": the bank is filled from other tasks and then only recalls. "stale": it stops learning
            after the first phase. "": neither.
        scale: the number of trajectories of each task. None: one.
        plugin: the name of the memory. "": Mulligan's bank.
    """

    name: str
    memory: Mapping[str, Json] | None = None
    control: str = ""
    scale: str | None = None
    plugin: str = ""

    def make(self, folder: str) -> TextMemory:
        """A new memory of the plug-in. folder: an empty folder for its files.

        Raises `InvalidInput`, `UnknownName`.
        """
        spec = Spec(self.plugin, self.memory or {})
        has_files = "folder" in settings_of(find("memories", self.plugin))
        memory = build("memories", spec.with_settings(folder=folder) if has_files else spec, {})
        if not hasattr(memory, "learn"):
            raise InvalidInput(f"The memory {self.plugin!r} has no method learn(episode).")
        return memory


@dataclass(frozen=True)
class StreamChoice:
    """The options of a stream.

    Attributes:
        base: the options of all legs.
        orders: the number of orders of the cases.
        unrelated: the benchmark or file of tasks that fills the banks of that control.
    """

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
            raise InvalidInput(f"Gain is measured against an arm without memory: add the arm {NONE!r}.")

    def to_json(self) -> dict[str, Json]:
        arms: list[Json] = [cast(Json, asdict(arm)) for arm in self.arms]
        return {"base": choice_json(self.base), "arms": arms, "orders": self.orders, "unrelated": self.unrelated}

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> StreamChoice:
        arms = tuple(Arm(**arm) for arm in options["arms"])
        return cls(choice_of(options["base"]), arms, options["orders"], options["unrelated"])


@dataclass(frozen=True)
class Leg:
    """One arm in one order. run: the id of its benchmark run."""

    arm: Arm
    order: int
    run: str

    @property
    def label(self) -> str:
        return f"{self.arm.name}, order {self.order}"


OnLeg: TypeAlias = Callable[[Leg, int, int, Finished | None], None]
"""Called with each leg, its number, and the number of legs: before it with None, after it with its results."""


@dataclass(frozen=True)
class StreamHooks:
    """Observers of a stream. on_begin: gets its record. run: the observers of each leg."""

    on_begin: Callable[[BenchRun], None] | None = None
    on_leg: OnLeg | None = None
    run: Hooks = field(default_factory=Hooks)


# --- arms and orders ------------------------------------------------------------------------------------------------


def shipped_arms() -> list[str]:
    """The names of all arms that need no file of the user."""
    return sorted([*(file.stem for file in ARMS.glob("*.toml")), *names("memories")])


def read_arm(text: str, config: Config, kind: str = "arm") -> Arm:
    """The arm with this name, in this file, or with this memory.

    kind: what errors call it. Raises `UnknownName`, and `InvalidInput` that names the file.
    """
    file = Path(text).expanduser() if text.endswith(".toml") else ARMS / f"{text}.toml"
    if not text.endswith(".toml") and not file.is_file():
        return _arm_of_plugin(text, kind)
    table = parse(file, read_file(str(file), "arm"))
    for key in table:
        if key not in ("summary", "scale", "memory"):
            raise InvalidInput(f"{file}: {UnknownName('key of an arm', key, ('summary', 'scale', 'memory'))}")
    memory = table.get("memory")
    if isinstance(memory, str):
        return replace(_arm_of_plugin(memory, "memory", file.parent), name=file.stem)
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


def _arm_of_plugin(text: str, kind: str, folder: Path | None = None) -> Arm:
    """The arm of a memory: a shipped one, `./mine.py` relative to a folder, or `package.module:Class`.

    folder: None: the working folder. Raises `UnknownName`, and `InvalidInput` for a memory that cannot be made.
    """
    if not is_own(text) and text.partition(":")[0] not in names("memories"):
        hint = "Or name your own memory (./mine.py, package.module:Class) or a file of settings (./mine.toml)."
        raise UnknownName(kind, text, shipped_arms(), hint)
    spec = spec_of("memories", text, folder)
    arm = Arm(short_name(spec.name), spec.settings, plugin=spec.name)
    with TemporaryDirectory(prefix=FOLDER) as files:
        arm.make(files)
    return arm


def with_controls(arms: Sequence[Arm], controls: Sequence[str]) -> tuple[Arm, ...]:
    """The arms, and for each arm with memory another one for each control."""
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
    """The cases in the order with this number. Order 1 is the original.

    Cases are shuffled only within their phase, and a case that announces a change stays the first of its phase.
    """
    if order == 1:
        return list(cases)
    ordered, chance = list[Case](), random.Random(f"{seed} order {order}")
    for _, phase in groupby(cases, key=lambda case: case.phase):
        shuffled = list(phase)
        announcement = [shuffled.pop(0)] if "change" in shuffled[0].task.inputs else []
        chance.shuffle(shuffled)
        ordered += [*announcement, *shuffled]
    return ordered


def legs_of(stream: str, choice: StreamChoice) -> list[Leg]:
    """The legs in the order in which they run. Within each order of cases, the arms are shuffled by the seed."""
    legs = list[Leg]()
    for order in range(1, choice.orders + 1):
        arms = list(choice.arms)
        random.Random(f"{choice.base.seed} arms {order}").shuffle(arms)
        legs += [Leg(arm, order, f"{stream}-{arm.name}-{order}") for arm in arms]
    return legs


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
    """Run the cases of a benchmark as a stream. `read_stream` in bench.report.stream returns its figures.

    Args:
        benchmark: a name, `name:argument`, or a file of tasks.
        arms: names of shipped arms or memories, or files.
        orders: the number of orders of the cases, the original included.
        controls: "unrelated", "stale": each adds an arm for each arm with memory.
        unrelated: the benchmark or file of tasks that fills the banks of that control.
        options: the fields of `BenchOptions` that no arm sets, such as method, tries, limit and seed.

    Returns:
        The record of the stream.

    Raises:
        InvalidInput: an option cannot be used; no model was called yet.
    """
    config = load()
    models = Models(config)
    all_arms = [arm if isinstance(arm, Arm) else read_arm(arm, config) for arm in arms]
    base = BenchOptions(benchmark, model=models.name(model), **options, reuse=True)
    stream = _Stream(config, models, StreamChoice(base, with_controls(all_arms, controls), orders, unrelated), hooks)
    async with opened_store(store, config) as shared_store:
        record = stream.record()
        await shared_store.benches.begin(record)
        return await stream.run_legs(shared_store, record)


async def resume_stream(
    id: str,
    *,
    model: Model | None = None,
    store: Store | None = None,
    hooks: StreamHooks = StreamHooks(),
) -> BenchRun:
    """Resume a stream that was interrupted. Finished cases are kept; cases that ended with an error run again.

    Args:
        id: the id of the stream.
        model: pass it again if the stream was started with an object.

    Raises:
        NotFound: no run has this id.
        InvalidInput: the run is not a stream.
        JournalDiverged: the cases have changed.
    """
    config = load()
    models = Models(config)
    models.name(model)
    async with opened_store(store, config) as shared_store:
        record = await stream_record(shared_store, id)
        stream = _Stream(config, models, StreamChoice.of(record.options), hooks)
        if stream.record().rests_on != record.rests_on:
            raise JournalDiverged(["the cases"], of=f"the stream {record.id}", otherwise="start a new one")
        return await stream.run_legs(shared_store, record)


async def stream_record(store: Store, id: str) -> BenchRun:
    """The record of a stream. Raises `NotFound`, and `InvalidInput` for a run that is not a stream."""
    run = await store.benches.run(id)
    if not is_stream(run):
        raise InvalidInput(
            f"{run.id} is a single run, not a stream. To resume it: mulligan bench run --resume {run.id}"
        )
    return run


@dataclass
class _Stream:
    """A stream that is run in this process."""

    config: Config
    models: Models
    choice: StreamChoice
    hooks: StreamHooks

    def record(self) -> BenchRun:
        """A new record of the stream. Raises `InvalidInput` if its options cannot work."""
        sandbox = Session(self.config, self.models).sandbox(self.choice.base.sandbox)
        plan = make_plan(self.choice.base, self.config, sandbox)
        self.cases = plan.cases
        plan.recipe(self.cases[0], "")
        id = f"s{secrets.token_hex(4)}"
        controls = {arm.control for arm in self.choice.arms}
        if "stale" in controls and self.first_phase == len(self.cases):
            raise InvalidInput("The control 'stale' needs a change in the middle of the stream, but no case has one.")
        if "unrelated" in controls:
            if self.choice.unrelated is None:
                raise InvalidInput("The control 'unrelated' needs other tasks to learn from: specify them.")
            make_plan(self._filling_options(self.choice.arms[0], ""), self.config, sandbox)
        rests_on: dict[str, Json] = {"the cases": digest([[case.id, case.task.prompt] for case in self.cases])}
        labels = tuple(leg.label for leg in legs_of(id, self.choice))
        benchmark = f"{STREAM}{self.choice.base.benchmark}"
        return BenchRun(id, benchmark, round(time.time(), 3), self.choice.to_json(), labels, rests_on)

    @property
    def first_phase(self) -> int:
        """The number of cases before the first change."""
        return sum(case.phase == self.cases[0].phase for case in self.cases)

    async def run_legs(self, store: Store, record: BenchRun) -> BenchRun:
        """Runs the legs that have not ended. Returns the record."""
        if self.hooks.on_begin:
            self.hooks.on_begin(record)
        legs = legs_of(record.id, self.choice)
        async with leased(store.benches, record.id):
            for number, leg in enumerate(legs, 1):
                if self.hooks.on_leg:
                    self.hooks.on_leg(leg, number, len(legs), None)
                finished = await self._run_leg(store, record, leg)
                if self.hooks.on_leg:
                    self.hooks.on_leg(leg, number, len(legs), finished)
        return record

    async def _run_leg(self, store: Store, record: BenchRun, leg: Leg) -> Finished:
        """Runs a leg; of the unrelated control, first the run that fills its bank."""
        unrelated = leg.arm.control == "unrelated"
        bank = f"{record.id}-{leg.arm.name}-filling" if unrelated else leg.run
        with TemporaryDirectory(prefix=FOLDER) as folder:
            make = partial(leg.arm.make, folder)
            memory = TextBank(make, partial(self._learned_by, store, leg.arm, bank)) if leg.arm.plugin else None
            run = partial(
                run_or_resume,
                store=store,
                models=self.models,
                config=self.config,
                bank=memory,
                hooks=self.hooks.run,
            )
            if unrelated:
                await run(bank, self._filling_options(leg.arm, bank))
            try:
                return await run(leg.run, self._leg_options(leg, bank))
            finally:
                if memory:
                    await memory.close()

    async def _learned_by(self, store: Store, arm: Arm, run: str) -> Sequence[Episode]:
        """The episodes that the memory of this arm learned from in this run, in order."""
        results = await store.benches.results(run)
        last = self.first_phase if arm.control == "stale" else len(results)
        learned = [result for result in results if result.status != "error" and result.position <= last]
        return [await store.load(mark.episode) for result in learned for mark in result.episodes]

    def _leg_options(self, leg: Leg, bank: str) -> BenchOptions:
        """The options of the run of this leg. bank: the agent id of its bank."""
        base = self.choice.base
        ids = [case.id for case in in_order(self.cases, base.seed, leg.order)]
        choice = base.changed(cases=ids, limit=None, shuffle=False, scale=leg.arm.scale or base.scale)
        if leg.arm.memory is None:
            return choice
        return choice.changed(
            memory="frozen" if leg.arm.control == "unrelated" else "online",
            agent_id=bank,
            taught=self.first_phase if leg.arm.control == "stale" else None,
            settings={**(base.settings or {}), **_bank_settings(leg.arm)},
        )

    def _filling_options(self, arm: Arm, bank: str) -> BenchOptions:
        """The options of the run that fills a bank from the unrelated tasks."""
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
            settings=_bank_settings(arm),
        )


def _bank_settings(arm: Arm) -> dict[str, Mapping[str, Json]]:
    """The settings of the bank that the legs of this arm open."""
    return {} if arm.plugin else {"memory": dict(arm.memory or {})}
