"""Words on the screen: the language model answers under a policy, and each word appears as it is computed.

    words_on_the_screen(["Count from 3 to 9.", "Spell owl."])

What is shown is measured: the seconds are those of this machine. As text, and for tests, the same run is counted in
steps, which makes it the same everywhere.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from course import lm
from course.engine.run import Run
from course.explore.controls import Choice, Slider, show
from course.explore.explorer import Explorer
from course.explore.table import EARLIER, Rows, failure, rows_of, text_table, with_earlier
from course.explore.tasks import Record, Settings, Task, in_words
from course.explore.words_tasks import TASKS
from course.explore.words_view import WordsView
from course.figures.words import seconds
from course.lm.prompts import held_out_prompts
from course.lm.speaker import Conversation
from course.lm.watch import STEP_SECONDS
from course.memory.kvcache import KVCache
from course.policies.base import Limits, Policy
from course.policies.continuous import Continuous
from course.policies.registry import POLICIES, Knob

MOST = 64
"""Prompts of a view: more have no room in its list."""
KNOBS = {"max_num_batched_tokens": 256, "max_queue_delay": 0.1}
"""Settings of the policies that have no slider."""
EXAMPLES = (3, 18, 4, 45, 13, 21, 0, 42, 20, 38, 25, 22)
"""Of the committed prompts: short and long answers, in an order in which they meet."""


class Play(NamedTuple):
    """What is served at one setting. cache: KV blocks; None: as many as the slots can fill."""

    questions: lm.Questions
    policy: Policy
    cache: KVCache | None = None

    def serve(self) -> lm.SpokenRun:
        """Let the model answer at once, by the clock of this machine. LMError: the model cannot be loaded."""
        return lm.serve_live(self.questions, self.policy, _model(), self.cache)

    def watch(self, clock: Callable[[], float] | None) -> lm.Watch:
        """A run that is not computed yet. clock: that of this machine if it is None. LMError as in `serve`."""
        return lm.Watch(self.questions, self.policy, _model(), self.cache, clock=clock or time.perf_counter)


class Timed:
    """A run as tables show it. counted: whether a step counts as `STEP_SECONDS`, whatever it takes."""

    run: Run
    counted = False

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def speed(self) -> str:
        """Tokens of answers per second, from the first arrival to the last of them; per step if those are counted."""
        rate = float(self.run.workload.output_tokens.sum() / self.run.makespan)
        return f"{rate * STEP_SECONDS:.2f} tokens a step" if self.counted else f"{rate:,.0f} tokens/s"

    def time(self, value: float) -> str:
        """Seconds in words, or steps if those are counted."""
        return f"{value / STEP_SECONDS:.1f} steps" if self.counted else seconds(value)


class Spoken(Timed):
    """One setting, as the view shows it.

    watch: the run, which may still be under way; the other attributes compute it to its end.
    """

    def __init__(self, settings: Settings, play: Play, clock: Callable[[], float] | None) -> None:
        self.settings, self.prompts, self.counted = settings, play.questions.conversations, clock is not None
        self.watch = play.watch(clock)

    @property
    def policy(self) -> str:
        """What its control calls the policy; without such a control the registered name."""
        if "policy" in self.settings:
            return str(self.settings["policy"])
        return next(name for name, kind in POLICIES.items() if kind is type(self.watch.policy))

    @property
    def described(self) -> dict[str, Any]:
        """What the browser has to know before the first step, as JSON values."""
        limits = Limits.of(self.watch.policy)
        return {
            "asked": [prompt_line(conversation) for conversation in self.prompts],
            "arrival": [float(at) for at in self.watch.load.arrival],
            "slots": limits.max_num_seqs,
            "padded": limits.padded,
            "policy": self.policy,
        }

    @cached_property
    def run(self) -> lm.SpokenRun:  # type: ignore[override]
        """What `lm.serve_live` returns."""
        return self.watch.run

    @cached_property
    def padding(self) -> int:
        """Tokens computed for nothing: behind short prompts, and in the slots of complete answers."""
        return sum(part.padding for frame in self._frames for part in frame.parts)

    @cached_property
    def computed(self) -> int:
        """Tokens computed, padding included."""
        parts = [part for frame in self._frames for part in frame.parts]
        return sum(part.padding + (part.prefill or part.text is not None) for part in parts)

    @cached_property
    def longest_line(self) -> int:
        """The most requests that stood in line while a step ran."""
        return max(len(frame.waiting) for frame in self._frames)

    def wait(self, row: int) -> float:
        """Seconds that a request stood in line before its first step."""
        return float(self.run.admitted[row] - self.run.arrival[row])

    @property
    def _frames(self) -> Sequence[lm.Frame]:
        assert self.run is not None
        return self.watch.frames


Compare = Callable[[Settings, Mapping[str, Spoken]], Iterable[Sequence[str]]]
"""From settings and the runs there, by policy, to the rows of a table; policies that have no run yet are left out."""


class WordsExplorer(Explorer):
    """Sliders over the language model that speaks. See `words_on_the_screen`.

    `compute` counts in steps, and is the same everywhere; the view measures.

    prompts: as `play` asks them. play: what is served, from the settings; ValueError: no prompt, or one that cannot be
    answered. compare: the table under the lanes; without a control `policy` it is the explorer's own table too.
    """

    def __init__(
        self, prompts: Sequence[Conversation], controls: Sequence[Slider | Choice], play: Callable[..., Play],
        compare: Compare | None = None, **shared: Any,
    ) -> None:  # fmt: skip
        super().__init__(self._run_in_steps, controls, figure=_no_figure, summary=rows, badge="measured", **shared)
        self.prompts, self._play, self._compare = tuple(prompts), play, compare
        self._policies = next((control.stops for control in controls if control.name == "policy"), ())
        self._known: dict[tuple[Any, ...], Spoken] = {}  # counted in steps
        self._measured: dict[tuple[Any, ...], Spoken] = {}  # the last run of each setting in a view

    def begin(self, settings: Settings, clock: Callable[[], float] | None = None) -> Spoken:
        """A run that is not computed yet. clock: counts steps in place of seconds. ValueError as `play`."""
        return Spoken(settings, self._play(**settings), clock)

    def _run_in_steps(self, **settings: Any) -> Spoken:
        key = tuple(settings.values())
        if key not in self._known:
            spoken = self.begin(settings, lm.step_clock())
            assert spoken.run is not None
            self._known[key] = spoken
        return self._known[key]

    def remember(self, settings: Settings, result: Spoken) -> None:
        """A run that a view has measured to its end."""
        self._measured[tuple(settings[control.name] for control in self.controls)] = result

    def rows(self, result: Spoken) -> Rows:
        """The table of one run."""
        if self._compare is None or self._policies:
            return super().rows(result)
        return rows_of(self._compare(result.settings, {result.policy: result}))

    def compared(self, settings: Settings) -> Rows:
        """The table of the policies at these settings, with what views have measured there; () where there is none.

        What was measured there before the kernel started stands in the cells that have nothing yet, and says so.
        """
        rows = self._under(settings, lambda **each: self._measured.get(tuple(each.values())))
        return with_earlier(rows, self.record.left().get(self._place(settings)))

    def keep_compared(self, settings: Settings) -> None:
        """Keep the table at these settings in the record."""
        rows = self.compared(settings)
        if rows:
            self.record.leave({self._place(settings): [[cell.removesuffix(EARLIER) for cell in row] for row in rows]})

    def _place(self, settings: Settings) -> str:
        fixed = {control.name: settings[control.name] for control in self.controls if control.name != "policy"}
        return "measured at " + ", ".join(f"{name} {show(value)}" for name, value in fixed.items())

    def _under(self, settings: Settings, run_at: Callable[..., Spoken | None]) -> Rows:
        if self._compare is None:
            return ()
        mine = {control.name: settings[control.name] for control in self.controls}
        runs = [run_at(**each) for each in ([mine | {"policy": name} for name in self._policies] or [mine])]
        return rows_of(self._compare(settings, {run.policy: run for run in runs if run is not None}))

    def shown(self, task: Task) -> tuple[Settings, Any]:
        """Return settings and result where a task is shown: as measured last, else counted in steps."""
        settings = self.settings_of(task)
        run = self._measured.get(tuple(settings.values()))
        return settings, self.compute(**settings) if run is None else run

    def default_result(self) -> Spoken:
        """Return the result at the default settings, counted in steps."""
        return self.compute()

    def text(self) -> str:
        """The run at the default settings in steps: its table, the words of each request, and the tasks."""
        start = ", ".join(f"{control.label} {control.text(control.default)}" for control in self.controls)
        lines = [f"{self.title} [modelled: counted in steps of {1e3 * STEP_SECONDS:g} ms]", f"At the start: {start}"]
        try:
            result = self.default_result()
            lines.append(text_table(self.rows(result), indent="  "))
            lines += [_line(result, row) for row in range(len(self.prompts))]
            if self._policies and self._compare is not None:
                lines.append(text_table(self._under(self.defaults, self.compute), indent="  "))
            lines += in_words(self.tasks, lambda task: (self.settings_of(task), self.compute(**self.settings_of(task))))
        except Exception as error:  # the widgets stay usable: another setting may work
            lines.append(failure(error))
        return "\n".join(lines)

    def new_view(self) -> WordsView:
        """The widgets of one display."""
        return WordsView(self)


def words_on_the_screen(
    prompts: Sequence[Conversation] | None = None,
    *,
    policy: str = "static",
    max_num_seqs: int = 4,
    rate: float = 16,
    choices: Sequence[str] = ("static", "dynamic", "continuous"),
    tasks: Sequence[Task] | None = None,
    record: Record | None = None,
    seed: int = 1,
    max_tokens: int | None = None,
    compare: Compare | None = None,
    title: str = "Words on the screen",
) -> WordsExplorer:
    """The live view: the model answers these prompts under a policy, to be played, paused and taken step by step.

    prompts: conversations, in the order in which they come; by default twelve of the committed ones. policy,
    max_num_seqs, rate: at the start; slots go from 1 to 8, the rate from 2 to 128 requests/s by factors of 2.
    choices: registered policies to choose from. tasks: by default four; those of a lesson may refer to `Spoken`.
    record: where tasks are kept. seed: of the Poisson arrivals. max_tokens: of each answer. compare: what a table under
    the lanes says of the policies that were played.

    Zero prompts, and a prompt that cannot be answered, make a view that says so in a sentence.

    Raises ValueError: a policy that is not registered, settings between two stops, more than 64 prompts.
    """
    usual = prompts is None
    if prompts is None:
        committed = held_out_prompts()
        prompts = [committed[place].turns[-1] for place in EXAMPLES]
    if len(prompts) > MOST:
        raise ValueError(f"there are {len(prompts):,} prompts, and the view has room for {MOST}: use fewer")
    for name in choices:
        policy_of(name, 1)
    controls = (
        Slider("rate", "Arrival rate", 2, 128, 2, rate, "requests/s", log=True),
        Slider("max_num_seqs", "Slots (max_num_seqs)", 1, 8, 2, max_num_seqs, log=True),
        Choice("policy", "Policy", [(name, name) for name in choices], policy),
    )
    mine: Sequence[Task] = (TASKS if usual else ()) if tasks is None else tasks

    def play(rate: float, max_num_seqs: int, policy: str) -> Play:
        return Play(lm.Questions.poisson(prompts, rate, seed, max_tokens), policy_of(policy, max_num_seqs))

    return WordsExplorer(prompts, controls, play, compare, title=title, tasks=mine, record=record)


def policy_of(name: str, max_num_seqs: int) -> Policy:
    """A registered policy with so many slots; its other settings are those of `KNOBS`, else its own or its commands'.

    Raises ValueError: no such policy.
    """
    if name not in POLICIES:
        raise ValueError(f"no policy is registered as {name!r}: choose from {', '.join(POLICIES)}")
    kind, values = POLICIES[name], {"max_num_seqs": max_num_seqs, **KNOBS}
    hints = get_type_hints(kind.__init__, include_extras=True)
    settings: dict[str, Any] = {}
    for each in list(inspect.signature(kind).parameters.values()):
        if each.name in values:
            settings[each.name] = values[each.name]
        elif each.default is each.empty and get_origin(hints.get(each.name)) is Annotated:
            settings[each.name] = next(part.default for part in get_args(hints[each.name]) if isinstance(part, Knob))
    return kind(**settings)


def rows(result: Spoken) -> list[tuple[str, str]]:
    """The table: steps, tokens/s, TTFT, padding, the line."""
    ttft = result.run.ttft
    count = len(result.run.steps)
    tokens = int(result.run.workload.output_tokens.sum())
    return [
        ("steps", f"{count:,}"),
        ("throughput", result.speed),
        ("TTFT, mean", result.time(float(np.mean(ttft)))),
        ("TTFT, longest", result.time(float(np.max(ttft)))),
        ("padding", f"{result.padding:,} of {result.computed:,} tokens computed"),
        ("answers", f"{tokens:,} tokens"),
        ("longest line", f"{result.longest_line:,} requests"),
    ]


def _line(result: Spoken, row: int) -> str:
    words = " ".join(result.run.words[row].split())
    return f"  #{row} TTFT {result.time(float(result.run.ttft[row])):>11}  {prompt_line(result.prompts[row])} → {words}"


def prompt_line(conversation: Conversation) -> str:
    """The prompt of a conversation, in one line."""
    last = conversation if isinstance(conversation, str | bytes) else conversation[-1]
    return " ".join((last.decode(errors="replace") if isinstance(last, bytes) else str(last)).split())


def _no_figure(_result: Any) -> Any:
    raise ValueError("the live view draws lanes of words, not a plotly figure")


@cache
def _model() -> lm.LanguageModel:
    """Loaded once, and asked once: the first step of a process is a slow one."""
    model = lm.load()
    lm.serve_live(lm.Questions.at_once(["Spell owl."], max_tokens=1), Continuous(1, 256), model)
    return model
