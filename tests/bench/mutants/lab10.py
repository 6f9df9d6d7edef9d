"""Lab 10: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, CONSTANT, KEY, NUMBER, ORDER, TERM, Mutant

ASKS, FACTS = "course/lessons/lab10/asks.yaml", "course/lessons/lab10/facts.py"
PROMPT, CHATS = "course/lessons/lab10/one_prompt.py", "course/lessons/lab10/chats.py"
LOOKUP, DECISION = "course/lessons/lab10/lookup.py", "course/lessons/lab10/decision.py"
GAME, EVENING = "course/lessons/lab10/game.py", "course/lessons/lab10/evening.py"
TASKS, LIVE = "course/lessons/lab10/tasks.py", "course/lessons/lab10/live_words.py"

MUTANTS = (
    Mutant(ASKS, "    right: c\n    why: Prompts took", "    right: a\n    why: Prompts took", KEY),
    Mutant(ASKS, "Each last block is filled up to {{waste_block}}.\n", "Each last block is filled up to 8.\n", NUMBER),
    Mutant(ASKS, "    solution: gain_right\n", "    solution: gain_more\n", TERM),
    Mutant(FACTS, "QUERIES, HITS, EX_SHARE = 400_000, 320_000, 0.6", "QUERIES, HITS, EX_SHARE = 400_000, 320_000, 0.7",
           CONSTANT),
    Mutant(FACTS, "saved = (ROOM_MANY - 1) * ROOM_SHARED", "saved = ROOM_MANY * ROOM_SHARED", BOUNDARY),
    Mutant(FACTS, '"ticket_before": monday.rates[0]', '"ticket_before": today.rates[0]', ORDER),
    Mutant(PROMPT, "return 1 / (1 - hit_rate * share)", "return 1 / (1 - hit_rate)", TERM),
    Mutant(PROMPT, "// BLOCK_SIZE - 1\n", "// BLOCK_SIZE\n", BOUNDARY),
    Mutant(PROMPT, "return self.off.makespan / self.on.makespan", "return self.on.makespan / self.off.makespan", ORDER),
    Mutant(PROMPT, "SYSTEM, OWN = 2_000, 104", "SYSTEM, OWN = 2_008, 104", CONSTANT),
    Mutant(CHATS, "sum(range(1, turns + 1)) + shared", "sum(range(1, turns)) + shared", BOUNDARY),
    Mutant(CHATS, "AGENTS, PEOPLE = 0.0, 1.0", "AGENTS, PEOPLE = 0.5, 1.0", CONSTANT),
    Mutant(CHATS, "ids[: tokens // BLOCK_SIZE]", "ids[: tokens // BLOCK_SIZE + 1]", BOUNDARY),
    Mutant(LOOKUP, "return (before, tuple(tokens))", "return (None, tuple(tokens))", TERM),
    Mutant(DECISION, "NEEDED = CHATS * AT_ITS_END + 1", "NEEDED = CHATS * HISTORY_BLOCKS + 1", TERM),
    Mutant(DECISION, "KVCache(num_blocks - 1, BLOCK_SIZE", "KVCache(num_blocks // 2, BLOCK_SIZE", CONSTANT),
    Mutant(GAME, "SLOTS, BLOCKS, BLOCK_SIZE = 2, 8, 10", "SLOTS, BLOCKS, BLOCK_SIZE = 2, 12, 10", CONSTANT),
    Mutant(GAME, "policies.LongestPrefixFirst(SLOTS, 1_000)", "policies.Continuous(SLOTS, 1_000)", ORDER),
    Mutant(GAME, "    best=107.5,", "    best=111.0,", CONSTANT),
    Mutant(EVENING, "BEFORE, SINCE = 0.90, 0.22", "BEFORE, SINCE = 0.90, 0.60", CONSTANT),
    Mutant(TASKS, "return SYSTEM + OWN - result.found", "return SYSTEM - result.found", TERM),
    Mutant(TASKS, "ENOUGH, MOST_BLOCKS = 0.8, 50_000", "ENOUGH, MOST_BLOCKS = 0.8, 40_000", CONSTANT),
    Mutant(LIVE, "first.setdefault(request, computed)", "first[request] = computed", ORDER),
)  # fmt: skip
