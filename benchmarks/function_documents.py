"""Every function document of BFCL as a card: `python benchmarks/function_documents.py FOLDER`.

FOLDER is `bfcl_eval/data` of the package bfcl-eval (`pip download --no-deps bfcl-eval`, unpacked). Prints how many
documents there are, how many names providers refuse, and exits with 1 where a card is not valid or a name is lost.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from taoloop.errors import ConfigError
from taoloop.tools.from_functions_json import cards_from_functions
from taoloop.tools.json_schema import compile_schema

FILES = (
    *("irrelevance", "live_irrelevance", "live_multiple", "live_parallel", "live_parallel_multiple", "live_simple"),
    *("multiple", "parallel", "parallel_multiple", "simple_python"),
)
TAKEN = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def documents(folder: Path) -> Iterator[list[Any]]:
    """The functions of each question."""
    for name in FILES:
        with (folder / f"BFCL_v4_{name}.json").open(encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)["function"]


def main(folder: Path) -> int:
    total = refused = wrong = 0
    started = time.process_time()
    for functions in documents(folder):
        made = cards_from_functions(functions)
        total += len(functions)
        refused += sum(TAKEN.fullmatch(one["name"]) is None for one in functions)
        wrong += len(made.problems) + len(functions) - len(made.cards)
        for card, function in zip(made.cards, functions, strict=False):
            try:
                compile_schema(card.input_schema, card.name)
            except ConfigError as error:
                print(f"{card.name}: {error}")
                wrong += 1
            told = function["parameters"].get("properties", {})
            back = {made.renamed.get(card.name, {}).get(arg, arg) for arg in card.parameters}
            if not TAKEN.fullmatch(card.name) or made.names[card.name] != function["name"] or back != set(told):
                print(f"{function['name']}: lost as {card.name}")
                wrong += 1
    took = time.process_time() - started
    print(f"{total:,} documents, {refused:,} with a name that providers refuse, {wrong} wrong; {took:.1f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
