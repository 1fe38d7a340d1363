"""Games of ALFWorld of our own making, from the grammar and the domain in its package: no file of its data is used.

Twelve small houses, two for each kind of task, with places that ALFWorld's own games do not have. `actions` do the task, thoughts included; they are the worked examples
of `interact.alfworld.games.md`, which `python tests/support/households.py` writes from the engine's own answers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

MISSING = 'needs alfworld: pip install -c constraints.txt -e ".[alfworld]"'
needs_alfworld = pytest.mark.skipif(find_spec("alfworld") is None or find_spec("textworld") is None, reason=MISSING)

KINDS = {
    "put": "pick_and_place_simple",
    "clean": "pick_clean_then_place_in_recep",
    "heat": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
    "examine": "look_at_obj_in_light",
    "puttwo": "pick_two_obj_and_place",
}
OPENABLE = {"cabinet", "drawer", "fridge", "microwave", "safe", "chest", "crate"}
STATES = {"clean": ("cleanable", "isClean"), "heat": ("heatable", "isHot"), "cool": ("coolable", "isCool")}


@dataclass(frozen=True)
class House:
    """places: each a receptacle and what is in it, numbered by type as they come. want: the object, and where to."""

    kind: str
    task: str
    places: tuple[str, ...]
    want: tuple[str, str]
    actions: tuple[str, ...]

    def folder(self) -> str:
        """The name that ALFWorld would give it."""
        thing, place = (word.capitalize() for word in self.want)
        return f"{KINDS[self.kind]}-{thing}-None-{place}-1"

    def data(self) -> dict[str, Any]:
        """The JSON of its game.tw-pddl."""
        return {
            "pddl_domain": _package("alfred.pddl"),
            "grammar": _package("alfred.twl2").replace("UNKNOWN GOAL", self.task),
            "pddl_problem": _problem(self),
            "solvable": True,
            "walkthrough": [action for action in self.actions if not action.startswith("think:")],
        }

    def write(self, root: Path, trial: str = "trial_own_1") -> Path:
        file = root / self.folder() / trial / "game.tw-pddl"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(self.data()))
        return file


def _package(name: str) -> str:
    spec = find_spec("alfworld")
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / "data" / name).read_text()


def _problem(house: House) -> str:
    objects, facts, counts = ["agent1 - agent", "loc_bar_0_bar_0_bar_0_bar_0 - location"], list[str](), Counter[str]()
    facts.append("(atLocation agent1 loc_bar_0_bar_0_bar_0_bar_0)")
    things, kinds = set[str](), set[str]()
    for number, line in enumerate(house.places, 1):
        place, *held = line.split()
        counts[place] += 1
        here = f"loc_bar_{number}_bar_0_bar_0_bar_0"
        name = _id(place, counts[place])
        objects += [f"{here} - location", f"{name} - receptacle"]
        facts += [f"(receptacleType {name} {place}Type)", f"(receptacleAtLocation {name} {here})"]
        facts += [f"(openable {name})"] * (place in OPENABLE)
        kinds.add(place)
        for thing in held:
            counts[thing] += 1
            things.add(thing)
            item = _id(thing, counts[thing])
            objects.append(f"{item} - object")
            facts += [f"(objectType {item} {thing}Type)", f"(inReceptacle {item} {name})"]
            facts.append(f"(objectAtLocation {item} {here})")
            facts += [f"(toggleable {item})"] if thing == "desklamp" else [f"(pickupable {item})"]
            facts += [f"({can} {item})" for can, _ in STATES.values()]
    objects += [f"{thing}Type - otype" for thing in sorted(things)] + [f"{kind}Type - rtype" for kind in sorted(kinds)]
    facts += [f"(canContain {kind}Type {thing}Type)" for kind in sorted(kinds) for thing in sorted(things)]
    parts = (f"(:objects {' '.join(objects)})", f"(:init {' '.join(facts)} (= (total-cost) 0))", _goal(house))
    return f"(define (problem house) (:domain alfred) {' '.join(parts)} (:metric minimize (total-cost)))"


def _id(name: str, number: int) -> str:
    """Of the form that ALFWorld's names are made from; the numbers come out as they go in."""
    base, basin = ("sink", "_bar_sinkbasin") if name == "sinkbasin" else (name, "")
    return f"{base}_bar__plus_{90 - number}_dot_00_bar__plus_00_dot_00{basin}"


def _goal(house: House) -> str:
    thing, place = house.want
    if house.kind == "examine":
        lit = "(objectType ?t desklampType) (toggleable ?t) (isToggled ?t) (receptacleAtLocation ?r ?l)"
        lamp = f"(exists (?t - object ?r - receptacle ?a - agent ?l - location) (and {lit} (atLocation ?a ?l)"
        held = f"(exists (?o - object ?a - agent) (and (objectType ?o {thing}Type) (holds ?a ?o)))"
        return f"(:goal (and {lamp} (inReceptacle ?t ?r))) {held}))"
    state = f"({STATES[house.kind][1]} ?o)" if house.kind in STATES else ""
    wanted = f"(inReceptacle ?o ?r) (objectType ?o {thing}Type) (receptacleType ?r {place}Type) {state}"
    second = f"(exists (?p - object) (and (not (= ?o ?p)) (objectType ?p {thing}Type) (inReceptacle ?p ?r)))"
    also = second if house.kind == "puttwo" else ""
    return f"(:goal (exists (?r - receptacle) (exists (?o - object) (and {wanted} {also}))))"


def played(house: House, answers: Sequence[str]) -> str:
    """The house as a worked example: the first answer is the beginning, then one to each action."""
    lines = [answers[0]]
    for action, answer in zip(house.actions, answers[1:], strict=True):
        lines += [f"> {action}", answer]
    return "\n".join(lines)


HOUSES = (
    House(
        "put",
        "put a pencil in chest",
        ("desk book", "chest", "shelf pencil", "armchair"),
        ("pencil", "chest"),
        (
            "think: I need a pencil, and then a chest. A pencil may lie on the desk or on the shelf. I begin at the desk.",
            "go to desk 1",
            "think: There is no pencil on the desk. The shelf is next.",
            "go to shelf 1",
            "take pencil 1 from shelf 1",
            "think: Now the chest. It has to be open before something goes in.",
            "go to chest 1",
            "open chest 1",
            "move pencil 1 to chest 1",
        ),
    ),
    House(
        "put",
        "put some towel on bench",
        ("cabinet", "cabinet towel", "bench soapbar", "toilet"),
        ("towel", "bench"),
        (
            "think: I look for a towel; the cabinets are the likely places. I open them one after the other.",
            "go to cabinet 1",
            "open cabinet 1",
            "think: It is empty. On to cabinet 2.",
            "go to cabinet 2",
            "open cabinet 2",
            "take towel 1 from cabinet 2",
            "think: I carry the towel. It goes on the bench.",
            "go to bench 1",
            "move towel 1 to bench 1",
        ),
    ),
    House(
        "clean",
        "put a clean fork in chest",
        ("diningtable fork plate", "chest", "sinkbasin", "stoveburner"),
        ("fork", "chest"),
        (
            "think: Three things are to be done: find a fork, clean it at the sinkbasin, put it into the chest.",
            "go to diningtable 1",
            "take fork 1 from diningtable 1",
            "think: The fork has to be clean before it is put away, so the sinkbasin comes first.",
            "go to sinkbasin 1",
            "clean fork 1 with sinkbasin 1",
            "go to chest 1",
            "open chest 1",
            "move fork 1 to chest 1",
        ),
    ),
    House(
        "clean",
        "clean some tomato and put it in basket",
        ("basket", "fridge egg tomato", "sinkbasin cup", "garbagecan"),
        ("tomato", "basket"),
        (
            "think: A tomato may be in the fridge. Then it is cleaned at the sinkbasin and goes to the basket.",
            "go to fridge 1",
            "open fridge 1",
            "take tomato 1 from fridge 1",
            "go to sinkbasin 1",
            "clean tomato 1 with sinkbasin 1",
            "think: It is clean. Now the basket.",
            "go to basket 1",
            "move tomato 1 to basket 1",
        ),
    ),
    House(
        "heat",
        "put a hot potato in rack",
        ("countertop bowl", "microwave", "rack", "cabinet potato"),
        ("potato", "rack"),
        (
            "think: I need a potato. The countertop is worth a look, then the cabinet.",
            "go to countertop 1",
            "think: Only a bowl. The cabinet.",
            "go to cabinet 1",
            "open cabinet 1",
            "take potato 1 from cabinet 1",
            "think: I heat it with the microwave, with the potato in my hand; it need not be put in.",
            "go to microwave 1",
            "heat potato 1 with microwave 1",
            "think: It is hot. Now the rack.",
            "go to rack 1",
            "move potato 1 to rack 1",
        ),
    ),
    House(
        "heat",
        "heat some bread and put it in tray",
        ("tray knife", "countertop bread lettuce", "microwave cup", "fridge"),
        ("bread", "tray"),
        (
            "think: First the bread, then the microwave, then the tray. Bread may lie on the countertop.",
            "go to countertop 1",
            "take bread 1 from countertop 1",
            "go to microwave 1",
            "heat bread 1 with microwave 1",
            "think: It is hot, and goes on the tray.",
            "go to tray 1",
            "move bread 1 to tray 1",
        ),
    ),
    House(
        "cool",
        "put a cool pan in rack",
        ("stoveburner kettle", "stoveburner pan", "fridge", "rack"),
        ("pan", "rack"),
        (
            "think: A pan is mostly on a stoveburner. It has to be cooled with the fridge, and goes on the rack then.",
            "go to stoveburner 1",
            "think: There is a kettle and no pan. The other stoveburner.",
            "go to stoveburner 2",
            "take pan 1 from stoveburner 2",
            "go to fridge 1",
            "cool pan 1 with fridge 1",
            "think: It is cool. Now the rack.",
            "go to rack 1",
            "move pan 1 to rack 1",
        ),
    ),
    House(
        "cool",
        "cool some egg and put it in bowlshelf",
        ("bowlshelf", "countertop plate", "garbagecan egg", "fridge milk"),
        ("egg", "bowlshelf"),
        (
            "think: I look for an egg: the countertop, the garbagecan, the fridge.",
            "go to countertop 1",
            "go to garbagecan 1",
            "take egg 1 from garbagecan 1",
            "think: I have it. It is cooled with the fridge while I hold it.",
            "go to fridge 1",
            "cool egg 1 with fridge 1",
            "go to bowlshelf 1",
            "move egg 1 to bowlshelf 1",
        ),
    ),
    House(
        "examine",
        "look at ticket under the desklamp",
        ("bed pillow", "drawer ticket", "desk desklamp"),
        ("ticket", "desklamp"),
        (
            "think: I have to hold a ticket where a desklamp is, and switch the lamp on. First I look for the ticket.",
            "go to bed 1",
            "go to drawer 1",
            "open drawer 1",
            "take ticket 1 from drawer 1",
            "think: Now the lamp. It may be on the desk.",
            "go to desk 1",
            "use desklamp 1",
        ),
    ),
    House(
        "examine",
        "examine the map with the desklamp",
        ("dresser map keychain", "sidetable desklamp", "sidetable cellphone", "safe"),
        ("map", "desklamp"),
        (
            "think: First the map, then a place with a desklamp.",
            "go to dresser 1",
            "take map 1 from dresser 1",
            "think: I hold the map. A lamp is often on a sidetable. I look at the second one first.",
            "go to sidetable 2",
            "think: No lamp here. The first one.",
            "go to sidetable 1",
            "use desklamp 1",
        ),
    ),
    House(
        "puttwo",
        "put two candle in crate",
        ("crate", "countertop candle", "shelf candle cloth", "toilet"),
        ("candle", "crate"),
        (
            "think: I can carry one thing at a time, so I go twice. I begin at the countertop.",
            "go to countertop 1",
            "take candle 1 from countertop 1",
            "go to crate 1",
            "open crate 1",
            "move candle 1 to crate 1",
            "think: One is in. I need the second; the shelf is next.",
            "go to shelf 1",
            "take candle 2 from shelf 1",
            "think: Into the same crate, which is still open.",
            "go to crate 1",
            "move candle 2 to crate 1",
        ),
    ),
    House(
        "puttwo",
        "find two newspaper and put them in bench",
        ("bench remote", "coffeetable newspaper newspaper", "armchair"),
        ("newspaper", "bench"),
        (
            "think: Newspapers may lie on the coffeetable. Both have to come to the bench, one after the other.",
            "go to coffeetable 1",
            "take newspaper 1 from coffeetable 1",
            "go to bench 1",
            "move newspaper 1 to bench 1",
            "think: The second newspaper is on the coffeetable, too.",
            "go to coffeetable 1",
            "take newspaper 2 from coffeetable 1",
            "go to bench 1",
            "move newspaper 2 to bench 1",
        ),
    ),
)


async def answers(house: House, root: Path) -> list[str]:
    """What our environment says to the actions; the last one has to win."""
    from mulligan.bench.alfworld.environments.alfworld import AlfWorld

    world = AlfWorld(str(house.write(root)), repeats=0)
    try:
        said, won = [await world.reset()], False
        for action in house.actions:
            step = await world.step(action)
            said.append(step.observation)
            won = bool(step.outcome and step.outcome.done and step.outcome.reward == 1.0)
        assert won, (house.task, said)
    finally:
        await world.close()
    return said


def examples(told: Iterator[str]) -> str:
    """The file of worked examples, from the houses as they were played."""
    parts = dict[str, list[str]]()
    for house, text in zip(HOUSES, told, strict=True):
        parts.setdefault(house.kind, []).append(text)
    return "\n\n".join(f"=== {kind}\n\n" + "\n\n".join(texts) for kind, texts in parts.items()) + "\n"


if __name__ == "__main__":
    import asyncio
    import tempfile

    async def write() -> None:
        told = list[str]()
        for number, house in enumerate(HOUSES):
            with tempfile.TemporaryDirectory() as folder:
                told.append(played(house, await answers(house, Path(folder) / str(number))))
        file = Path(__file__).parents[2] / "src/mulligan/bench/alfworld/interact.alfworld.games.md"
        file.write_text(examples(iter(told)))

    asyncio.run(write())
