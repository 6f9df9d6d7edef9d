"""How many blocks of a published trace a cache of a given size finds: writes course/data/mooncake_hits.json.

    .venv/bin/python -m tools.mooncake_hits PATH/mooncake_conversation_head3000.jsonl

The trace is the conversation part of Mooncake's (github.com/kvcache-ai/Mooncake, FAST25-release, Apache-2.0), its first
3,000 requests. Only counts are kept. `course.memory.prefixes.lru_hits` says how they are counted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from course import traces
from course.memory.prefixes import lru_hits

FILE = Path(__file__).parents[1] / "course" / "data" / "mooncake_hits.json"
CAPACITIES = (250, 500, 822, 1_000, 1_695, 2_000, 5_000, 10_000, 20_000, 40_000, None)


def counted(path: Path) -> dict[str, Any]:
    """What stands in the file, from the trace."""
    load = traces.read(path, spread=True)
    found = [lru_hits(load, capacity) for capacity in CAPACITIES]
    return {
        "trace": "Mooncake, conversation, the first 3,000 requests",
        "source": "https://github.com/kvcache-ai/Mooncake (FAST25-release, Apache-2.0)",
        "requests": len(load),
        "block_size": 512,
        "blocks": int(found[0].blocks.sum()),
        "capacity": list(CAPACITIES),
        "hit_blocks": [int(one.hit_blocks.sum()) for one in found],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(counted(Path(sys.argv[1])), indent=1) + "\n", encoding="utf-8")
