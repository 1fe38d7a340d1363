"""A shop on disk with its search: opened once for all the episodes of a process. BM25 as Lucene has it, by `bm25s`.

WebShop itself searches by Pyserini, which needs Java; k1 and b are Pyserini's.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mulligan.bench.webshop._shop_files import read_shop
from mulligan.bench.webshop._shops import NEEDS, Goal, Product, Shop, words
from mulligan.core.errors import InvalidInput

K1, B = 0.9, 0.4
_lock = threading.Lock()


@dataclass(frozen=True)
class OpenShop:
    shop: Shop
    goals: dict[str, Goal]
    index: Any

    def find(self, query: str, most: int) -> list[Product]:
        """The best `most` products that share a word with the query; equal ones in the order of the file."""
        asked = [word for word in words(query) if word in self.index.vocab_dict]
        if not asked:
            return []
        scores = self.index.get_scores(asked).tolist()
        ranked = sorted((number for number, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], n))
        return [self.shop.products[number] for number in ranked[:most]]


def open_shop(files: Sequence[Path]) -> OpenShop:
    """Raises `InvalidInput` where a file cannot be used, or the library for the search is not there."""
    with _lock:  # two episodes that begin together read the files once
        try:
            return _opened(tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The shop cannot be read: {error}.") from error


@lru_cache(maxsize=2)
def _opened(files: tuple[tuple[Path, int, int], ...]) -> OpenShop:
    try:
        import bm25s  # pyright: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError:
        raise InvalidInput(NEEDS) from None
    shop = read_shop({str(path): path.read_text(encoding="utf-8-sig") for path, _, _ in files})
    index: Any = bm25s.BM25(method="lucene", k1=K1, b=B)
    index.index([words(_text(product)) or ["nothing"] for product in shop.products], show_progress=False)
    return OpenShop(shop, {goal.id: goal for goal in shop.goals}, index)


def _text(product: Product) -> str:
    """What a search looks into: what the pages show."""
    options = (f"{name} {' '.join(values)}" for name, values in product.options.items())
    return " ".join([product.name, *product.category, product.description, *product.features, *options])
