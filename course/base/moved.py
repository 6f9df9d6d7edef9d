"""Where modules went when the course got its rooms: a sentence for whoever still imports one from its old place.

Mostly that is a learner's copy of a lab from before. `course` asks here only when no module of a name is found.
"""

import re

# Both without "course." in front; what lay inside a package that is listed went with it.
NEW_HOMES = {
    "arrivals": "workload.arrivals",
    "bench": "gpu.bench",
    "budget": "memory",
    "budget.card": "memory.card",
    "budget.estimates": "memory.estimates",
    "budget.pool": "memory.layout",
    "budget.report": "memory.report",
    "chunk_explorer": "lessons.lab07.chunk_explorer",
    "columns": "workload.columns",
    "config_picker": "lessons.lab08.config_picker",
    "conversations": "workload.conversations",
    "copies": "desk.copies",
    "doctor": "desk.doctor",
    "exercises.filelock": "base.filelock",
    "exercises.flaws": "lessons.lab16.flaws",
    "exercises.honest": "lessons.lab16.honest",
    "exercises.lab03": "lessons.lab03",
    "exercises.lab04": "lessons.lab04",
    "exercises.lab07": "lessons.lab07",
    "exercises.lab08": "lessons.lab08",
    "exercises.lab16": "lessons.lab16",
    "exercises.quiz03": "lessons.lab03",
    "exercises.quiz07": "lessons.lab07",
    "exercises.quiz08": "lessons.lab08",
    "exercises.quiz16": "lessons.lab16",
    "exercises.refill": "lessons.lab04.refill",
    "exercises.reports08": "lessons.lab08.reports",
    "exercises.share": "lessons.lab07.share",
    "figures.chunks": "lessons.lab07.figures",
    "figures.load": "lessons.lab03.figures",
    "figures.measuring": "lessons.lab16.figures",
    "figures.memory": "lessons.lab08.figures",
    "figures.policies": "lessons.lab04.figures",
    "figures.prefill": "lessons.lab07.prefill",
    "files": "base.files",
    "flags.defaults": "models.engine_defaults",
    "gpus": "models.gpus",
    "kernel_explorer": "explore.kernel",
    "kvcache": "memory.kvcache",
    "lengths": "workload.lengths",
    "loops": "engine",
    "metrics": "engine.metrics",
    "prefixes": "memory.prefixes",
    "profiles": "gpu.recordings",
    "quick": "base.quick",
    "run": "engine.run",
    "scenarios": "lessons",
    "scenarios.card_memory": "lessons.lab08.card_memory",
    "scenarios.engine_prints": "lessons.lab08.engine_prints",
    "scenarios.kv_pool": "lessons.lab08.kv_pool",
    "scenarios.load_test": "lessons.lab16.load_test",
    "scenarios.long_prompt": "lessons.lab07.long_prompt",
    "scenarios.many_tools": "lessons.lab16.many_tools",
    "scenarios.one_engine": "lessons.lab03.one_engine",
    "scenarios.own_log": "lessons.lab16.own_log",
    "scenarios.prompt_chunks": "lessons.lab07.prompt_chunks",
    "scenarios.side_by_side": "lessons.lab04.side_by_side",
    "scenarios.steady_window": "lessons.lab16.steady_window",
    "scenarios.three_batchers": "lessons.lab04.three_batchers",
    "scenarios.three_files": "lessons.lab16.three_files",
    "serving": "engine.serving",
    "settings": "base.settings",
    "steps": "engine.steps",
    "steptime.profiles.chunks": "gpu.recordings",
    "streams": "base.streams",
    "synthetic": "workload.synthetic",
    "textfiles": "base.textfiles",
    "transforms": "workload.transforms",
    "workspace": "desk.workspace",
}


def explain(module: str) -> None:
    """Say where a module of before has gone, as an ImportError; of any other name, say nothing.

    module: its full name, such as "course.scenarios.long_prompt". The sentence names `course reset`, with the lab's
    number where the module was one lab's.
    """
    old = module.removeprefix("course.")
    while old and old not in NEW_HOMES:
        old = old.rpartition(".")[0]
    if not old:
        return
    new = NEW_HOMES[old]
    lab = re.match(r"lessons\.lab(\d\d)", new)
    number, meaning = (lab[1], "") if lab else ("NN", ", where NN is the number of the lab,")
    raise ImportError(
        f"course.{old} is now course.{new}. In your copy of a lab this means that the labs have changed since it was "
        f"made: `course reset {number}` in a terminal{meaning} puts your copy aside and makes a fresh one.",
        name=module,
    )
