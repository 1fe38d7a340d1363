"""The kinds of task of one bank: proposed from the tasks that it has seen, kept, and given to later tasks.

The tasks are those of the lessons that a recall here may give (those of the agent, facts of this project alone), and
those of the accounts of this project's episodes. No task of another agent is seen, and what is kept counts for this
agent in this project.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mulligan.bank.kinds.clusters import centred, clusters, nearest
from mulligan.bank.kinds.names import named_by_model, named_by_words, naming_prompt
from mulligan.bank.learn.learning import ACCOUNTS, LessonWriter
from mulligan.bank.learn.screening import QUERY, visible
from mulligan.bank.ports import NO_MODEL, Ports
from mulligan.bank.recall.embedding import embed
from mulligan.core.errors import InvalidInput, ModelError, StoreError
from mulligan.core.lessons import FoundKind, KindMap, Selection
from mulligan.core.protocols import Embedder
from mulligan.core.ranking import Array
from mulligan.core.records import KindOrigin, Lesson, Task, checked_kind, folded_kind, same_kind
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.text.formatting import task_text
from mulligan.text.secrets import mask

ALIKE, ALIKE_BY_WORDS = 0.4, 0.5
"""The mean cosine from which on a task belongs to a cluster: of vectors, and of words alone (design/092)."""
SMALLEST, FEWEST, MOST = 3, 6, 1000
"""Tasks of a cluster at least, tasks without which nothing is clustered, and tasks that are looked at, the newest."""


@dataclass(frozen=True)
class ProposedKind:
    """A cluster of tasks with a name.

    Attributes:
        mean: see `FoundKind`.
        tasks: the texts of its tasks, the most like the others first.
        similarities: of each of them, its mean cosine with the tasks of the cluster.
    """

    name: str
    mean: bytes
    tasks: tuple[str, ...]
    similarities: tuple[float, ...]


@dataclass(frozen=True)
class Proposal:
    """Kinds that were found and are not kept yet, the largest first.

    Attributes:
        tasks: how many tasks there are.
        embedder, alike, centre: see `KindMap`.
        note: what qualifies it, in a sentence.
    """

    kinds: tuple[ProposedKind, ...] = ()
    tasks: int = 0
    embedder: str = ""
    alike: float = ALIKE
    centre: bytes = b""
    note: str = ""

    @property
    def alone(self) -> int:
        """How many tasks belong to no cluster."""
        return self.tasks - sum(len(kind.tasks) for kind in self.kinds)

    def renamed(self, names: Mapping[str, str]) -> Proposal:
        """With other names, by the proposed ones. Raises `InvalidInput` for one that is not proposed, and for one that
        cannot name a kind."""
        self._check(names)
        new = {folded_kind(old): checked_kind(name) for old, name in names.items()}
        if not all(new.values()):
            raise InvalidInput("The new name of a kind is empty.")
        kinds = tuple(replace(kind, name=new.get(folded_kind(kind.name), kind.name)) for kind in self.kinds)
        return replace(self, kinds=kinds)

    def without(self, names: Sequence[str]) -> Proposal:
        """Without these kinds. Raises `InvalidInput` for one that is not proposed."""
        self._check(names)
        left_out = set(map(folded_kind, names))
        return replace(self, kinds=tuple(kind for kind in self.kinds if folded_kind(kind.name) not in left_out))

    def _check(self, names: Sequence[str] | Mapping[str, str]) -> None:
        for name in names:
            if not any(same_kind(name, kind.name) for kind in self.kinds):
                proposed = ", ".join(kind.name for kind in self.kinds) or "none"
                raise InvalidInput(f"No kind {name!r:.80} is proposed. Proposed: {proposed}.")


class Kinds:
    """The kinds of task of one agent in one project. Raises `InvalidInput`, `StoreError`."""

    def __init__(self, ports: Ports, writer: LessonWriter) -> None:
        self._ports, self._writer = ports, writer
        self._lessons = ports.memory.lessons

    async def propose(self, *, alike: float | None = None, by_model: bool = False) -> Proposal:
        """Clusters of the tasks that the bank has seen, with names. Changes nothing.

        The same tasks give the same clusters, in whatever order they came. Without an embedder that answers, tasks are
        compared by their words.

        Args:
            alike: The mean cosine that joins tasks, above 0 and at most 1; more gives smaller clusters. None: see
                `ALIKE`.
            by_model: Whether the bank's model names the clusters; else words of the tasks do.
        """
        self._check_one_agent()
        if alike is not None and not 0 < alike <= 1:
            raise InvalidInput(f"Tasks are alike from a similarity above 0 and at most 1, not {alike:g}.")
        if by_model and self._ports.model is None:
            raise InvalidInput(NO_MODEL)
        seen = await self._seen()
        if len(seen) < FEWEST:
            return Proposal(tasks=len(seen), note=f"nothing to cluster yet: {len(seen)} tasks, at least {FEWEST}")
        texts = list(seen)
        embedder, vectors, note = await self._vectors(texts)
        cut = alike or (ALIKE_BY_WORDS if isinstance(embedder, HashEmbedder) else ALIKE)
        centre = vectors.mean(axis=0)
        found = clusters(centred(vectors, centre), cut, SMALLEST)
        groups = [[texts[row] for row in one.rows] for one in found]
        if by_model and groups:
            assert self._ports.model is not None
            names = await named_by_model(self._ports.model, naming_prompt(self._ports.prompts), groups)
        else:
            names = named_by_words(groups, [[seen[text] for text in group] for group in groups])
        kinds = tuple(
            ProposedKind(name, _bytes(one.mean), tuple(group), one.similarities)
            for name, group, one in zip(names, groups, found, strict=True)
        )
        return Proposal(kinds, len(texts), embedder.id, cut, _bytes(centre), note)

    async def keep(self, proposal: Proposal, *, lessons: bool = False) -> KindMap:
        """Keeps these kinds: later tasks without a kind get that of the nearest cluster, until `undo`.

        lessons: whether active lessons without a kind get that of the cluster that their task is nearest to.
        """
        self._check_one_agent()
        if not proposal.kinds:
            raise InvalidInput(f"There is no kind to keep: {proposal.note or 'no cluster was found'}.")
        kept = KindMap(
            self._ports.project,
            round(time.time(), 3),
            proposal.embedder,
            proposal.alike,
            proposal.centre,
            tuple(FoundKind(kind.name, kind.mean, len(kind.tasks)) for kind in proposal.kinds),
            proposal.tasks,
        )
        without = [one for one in await self._known(("active",)) if not one.kind and one.query.strip()]
        if lessons and without:
            near = zip(without, await self._nearest(kept, [_plain(one.query) for one in without]), strict=True)
            kept = replace(kept, lessons={one.id: name for one, (name, much) in near if much >= kept.alike})
        await self._lessons.keep_kinds(self._ports.writes, kept)  # first, so that `undo` knows what was changed
        for id, name in kept.lessons.items():
            await self._change(id, "", name, "the kind of the nearest cluster")
        return kept

    async def kept(self) -> KindMap | None:
        """The kinds that count now."""
        self._check_one_agent()
        return await self._lessons.kinds(self._ports.writes, self._ports.project)

    async def undo(self) -> KindMap:
        """Takes back the last `keep`; what was kept before counts again. Lessons lose the kinds that they were given,
        unless they have another one by now. Returns what was taken back."""
        kept = await self.kept()
        if kept is None:
            raise InvalidInput("No kinds are kept here, so there is nothing to take back.")
        states = ("active", "retired", "quarantined")
        lessons = await self._writer.present(self._ports.writes, list(kept.lessons), states)
        for one in lessons:
            await self._change(one.id, kept.lessons[one.id], "", "kinds were taken back")
        await self._lessons.drop_kinds(self._ports.writes, self._ports.project)
        return kept

    async def with_kind(self, task: Task) -> tuple[Task, str]:
        """The task with the kind of the nearest kept cluster, if it is near enough, and a sentence about that.

        The task says where its kind comes from. It comes back as it is, with "", if it has a kind or was given none,
        and where no kinds are kept or [memory] turns this off. What fails gives no kind, and the sentence says why.
        """
        settings = self._ports.settings
        if (
            task.kind
            or task.kind_from
            or settings.paper
            or not settings.kinds_by_cluster
            or self._ports.agent_id is None
        ):
            return task, ""
        try:
            kept = await self.kept()
            if kept is None:
                return task, ""
            ((name, similarity),) = await self._nearest(kept, [_plain(task_text(task))])
        except (InvalidInput, ModelError, StoreError) as error:
            return task, f"No kind by cluster: {error}"
        origin = KindOrigin("cluster", "", name, round(similarity, 3), kept.alike)
        if similarity < kept.alike:
            return replace(task, kind_from=origin), ""
        return replace(task, kind=name, kind_from=origin), f"The kind of this task, by its nearest cluster: {name}"

    def _check_one_agent(self) -> None:
        if self._ports.agent_id is None:
            raise InvalidInput("Kinds of task belong to one agent: name it with agent_id=NAME.")

    async def _known(self, states: Sequence[str]) -> Sequence[Lesson]:
        """The lessons that a recall here may give, newest first."""
        which = Selection(states, limit=None)  # pyright: ignore[reportArgumentType]
        project = self._ports.project
        return [
            one
            for one in await self._lessons.list(self._ports.writes, which)
            if one.nature == "strategy" or (one.nature == "fact" and one.project in ("", project))
        ]

    async def _seen(self) -> dict[str, str]:
        """The texts of the tasks, in order, each with the kind that a lesson says, else ""."""
        found = dict[str, tuple[float, str]]()
        lessons = await self._known(("active", "retired", "superseded"))
        for one in lessons:
            text = _plain(one.query)
            at, kind = found.get(text, (one.created, ""))
            found[text] = (at, kind or one.kind)
        learned = {one.origin.episode for one in lessons if one.origin.episode}
        for account in await self._lessons.accounts(self._ports.writes, self._ports.project, ACCOUNTS):
            if account.id not in learned:
                found.setdefault(_plain(_task_of(account.text)), (account.at, ""))
        found.pop("", None)
        newest = sorted(found, key=lambda text: (-found[text][0], text))[:MOST]
        return {text: found[text][1] for text in sorted(newest)}

    async def _vectors(self, texts: Sequence[str]) -> tuple[Embedder, Array, str]:
        """The embedder that answered, the vectors, and why they are of words alone, else ""."""
        vectors = self._ports.vectors
        made = await vectors.of(texts)
        if made is not None and vectors.embedder is not None:
            return vectors.embedder, made, ""
        words = HashEmbedder()
        return words, await embed(words, texts), f"by words alone: {vectors.why_not}"

    async def _nearest(self, kept: KindMap, texts: Sequence[str]) -> list[tuple[str, float]]:
        """The kind of the cluster that each text is nearest to, and the similarity.

        Raises `InvalidInput` where the embedder is another one than that of the kinds, or does not answer.
        """
        vectors = self._ports.vectors
        if kept.embedder == HashEmbedder().id:
            made = await embed(HashEmbedder(), texts)
        elif vectors.id != kept.embedder:
            raise InvalidInput(
                f"the kinds were found with the embedder {kept.embedder}, and the bank has {vectors.id or 'none'}. "
                "Find them anew: mulligan memory kinds --keep"
            )
        elif (made := await vectors.of(texts)) is None:
            raise InvalidInput(vectors.why_not)
        means = np.stack([np.frombuffer(kind.mean, np.float32) for kind in kept.kinds])
        of, similarity = nearest(centred(made, np.frombuffer(kept.centre, np.float32)), means)
        return [
            (kept.kinds[int(n)].name, float(much)) for n, much in zip(of.tolist(), similarity.tolist(), strict=True)
        ]

    async def _change(self, id: str, before: str, kind: str, why: str) -> None:
        """Gives a lesson this kind, if it has the kind `before`."""

        def changed(lesson: Lesson) -> Lesson:
            same = same_kind(lesson.kind, before) if before else not lesson.kind
            return replace(lesson, kind=kind) if same else lesson

        await self._writer.change(self._ports.writes, id, "edited", changed, detail={"why": why}, by_a_person=True)


def _plain(text: str) -> str:
    """The text of a task as the bank keeps it."""
    return mask(visible(text))[:QUERY].strip()


def _task_of(account: str) -> str:
    """The task in the text of an account: what stands in its first fence."""
    return "\n".join(account.partition("\n\nTrial ")[0].splitlines()[1:-1])


def _bytes(vector: Array) -> bytes:
    return np.asarray(vector, np.float32).tobytes()
