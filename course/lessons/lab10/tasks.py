"""Lab 10: what its explorers ask of a result."""

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.lessons.lab10 import chats, one_prompt
from course.lessons.lab10.chats import AGENTS, PEOPLE, Chats
from course.lessons.lab10.one_prompt import AT_ONCE, OWN, SYSTEM, Both

# One system prompt

PROMPT: dict[str, Any] = {"answer": 200, "rate": AT_ONCE, "block_size": one_prompt.BLOCK_SIZE}
LIGHT = 8.0  # requests/s, far below what the card can do
LARGE = 512  # tokens of a block
TIMES = 8  # what a task asks for: the gain


def prompt(settings: Settings, result: Both) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "gain": f"{result.gain:.1f}",
        "answer": settings["answer"],
        "share": f"{one_prompt.prompts_alone(settings['answer']):.0%}",
        "rest": f"{1 - one_prompt.prompts_alone(settings['answer']):.0%}",
        "found": f"{result.found:,}",
        "full": result.found // settings["block_size"],
    }


def gains(settings: Settings, result: Both) -> bool:
    """Whether caching gains TIMES at least."""
    return settings["rate"] == AT_ONCE and result.gain >= TIMES


def same_hits(settings: Settings, result: Both) -> bool:
    """Whether as much is found as at the start."""
    return abs(result.hit_rate - one_prompt.both().hit_rate) < 1e-3


def computed(settings: Settings, result: Both) -> float:
    """Tokens that the last prompt computes."""
    return SYSTEM + OWN - result.found


def large_blocks(settings: Settings, result: Both) -> bool:
    """Whether blocks are those that the task names."""
    return settings["block_size"] == LARGE


def none_in_one(settings: Settings, result: Both) -> bool:
    """Whether a block longer than the system prompt finds nothing."""
    return one_prompt.both(block_size=2_048).found == 0


def rest_stays(settings: Settings, result: Both) -> bool:
    """Whether what is no prompt takes more time than would be left of a twentieth."""
    rest = 1 - one_prompt.prompts_alone(settings["answer"])
    return result.on.makespan > rest * result.off.makespan > result.off.makespan / 20


# Chats that come back

CHATS: dict[str, Any] = {"num_blocks": 14_000, "pause": chats.PAUSE, "pause_cv": AGENTS}
SMALL = 2_000  # blocks
ENOUGH, MOST_BLOCKS = 0.8, 50_000
"""What a task asks for: the hit rate, and blocks that may be used."""


def _at(settings: Settings, **moved: Any) -> Chats:
    return chats.returned(**{**settings, **moved})


def returning(settings: Settings, result: Chats) -> Mapping[str, Any]:
    """What the answers name."""
    agents = _at(CHATS)
    return {
        "hits": f"{result.hit_rate:.0%}",
        "blocks": f"{settings['num_blocks']:,}",
        "pause": f"{settings['pause']:g} s",
        "half": f"{_at(settings, num_blocks=settings['num_blocks'] // 4_000 * 2_000).hit_rate:.0%}",
        "half_blocks": f"{settings['num_blocks'] // 4_000 * 2_000:,}",
        "needed": f"{chats.blocks_needed(chats.RATE, settings['pause'], chats.TURNS, chats.A_TURN, chats.SHARED):,.0f}",
        "agents": f"{agents.hit_rate:.1%}",
        "people": f"{_at(CHATS, pause_cv=PEOPLE).hit_rate:.1%}",
        "small": f"{_at(CHATS, num_blocks=SMALL).hit_rate:.0%}",
        "small_blocks": f"{SMALL:,}",
    }


def found_again(settings: Settings, result: Chats) -> bool:
    """Whether nearly all that can be found is found, in no more blocks than that takes."""
    return result.hit_rate >= ENOUGH and settings["num_blocks"] <= MOST_BLOCKS


def half_buys_little(settings: Settings, result: Chats) -> bool:
    """Whether half of the blocks buy less than a third of the hits above those of a small pool."""
    small, half = (_at(CHATS, num_blocks=n).hit_rate for n in (SMALL, settings["num_blocks"] // 4_000 * 2_000))
    return half - small < (result.hit_rate - small) / 3


def points(settings: Settings, result: Chats) -> float:
    """Points of hit rate that people find more than agents, in the pool at the start."""
    return 100 * (result.hit_rate - _at(CHATS).hit_rate)


def people(settings: Settings, result: Chats) -> bool:
    """Whether pauses vary, and nothing else was moved."""
    return {**settings, "pause_cv": AGENTS} == CHATS and settings["pause_cv"] == PEOPLE


def some_come_soon(settings: Settings, result: Chats) -> bool:
    """Whether most people's pauses are shorter than the mean."""
    pauses = chats.talks(pause_cv=PEOPLE).think_time
    return pauses is not None and (pauses[pauses > 0] < chats.PAUSE).mean() > 0.6


def pushed_out(settings: Settings, result: Chats) -> bool:
    """Whether within one pause more blocks are filled than the pool has, and one history fits it with ease."""
    needed = chats.blocks_needed(chats.RATE, settings["pause"], chats.TURNS, chats.A_TURN, chats.SHARED)
    return needed > 2 * settings["num_blocks"] > 4 * (chats.TURNS * chats.A_TURN + chats.SHARED)
