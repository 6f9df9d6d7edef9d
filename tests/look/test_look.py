"""What `course look` says of small files of every kind, of public pastes, and of what people do to them on the way."""

import json
import random
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest

from course.look import Answer, look
from course.look.limits import table
from course.models import gpus, named_or_read
from tests.helpers.sizes import size

DATA = Path(__file__).parents[1] / "data" / "look"
KINDS = json.loads((DATA / "kinds" / "expected.json").read_text(encoding="utf-8"))
PUBLIC = json.loads((DATA / "public" / "judged.json").read_text(encoding="utf-8"))
SHOWN = 1e-5  # of a number: six digits are shown
CANNOT_TELL = {
    "62",
    "71",
    "81",
    "82",
    "83",
    "106",
    "108",
    "111",
}  # of the public ones: one line, an idle engine, several that fit
REFUSED = {"74", "76", "80", "96", "107"}  # no line is known, or a block is not whole
SECOND = {"102": "kv_blocks"}  # what is named is the second answer of the judge, whose first is that none can be told


@cache
def spec(name: str):
    return named_or_read(name) if name else None


def kind(name: str) -> str:
    return (DATA / "kinds" / f"{name}.txt").read_text(encoding="utf-8")


def public(name: str) -> str:
    return (DATA / "public" / f"{name}.txt").read_text(encoding="utf-8")


def named(answer: Answer) -> list[str]:
    return [one["limit"] for one in answer.limits]


@pytest.mark.parametrize("name", KINDS)
def test_each_kind(name):
    expected = KINDS[name]
    answer = look(kind(name), spec(expected["config"]))
    assert named(answer) == ([expected["limit"]] if expected["limit"] else [])
    assert answer.limits or answer.cannot_tell
    verdicts = {one.name: one.verdict for one in answer.checks}
    assert expected["checks"].items() <= verdicts.items(), verdicts


def test_every_limit_has_a_file():
    assert {one["limit"] for one in KINDS.values()} - {""} == set(table())


def test_a_start_alone_names_no_running_limit():
    """What was printed before the first request says nothing about the load."""
    of_the_start = {"cuda_graphs"}
    for name in KINDS:
        if name.startswith("start"):
            assert set(named(look(kind(name), spec(KINDS[name]["config"])))) <= of_the_start, name


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_pastes(name):
    """Judged before any was run; `CANNOT_TELL` is where the limit is not found. docs/public_inputs.md counts them."""
    if name in REFUSED:
        with pytest.raises(ValueError, match=r"no line is known here|paste the whole block"):
            look(public(name))
        return
    answer = look(public(name))
    limit = SECOND.get(name, PUBLIC[name]["limit"])
    assert name not in SECOND or limit in PUBLIC[name]["also"]
    assert named(answer)[:1] == ([] if name in CANNOT_TELL or not limit else [limit])
    assert set(named(answer)[1:]) <= set(PUBLIC[name].get("also", ()))
    assert answer.limits or answer.cannot_tell


def same(one: float, other: float) -> bool:
    """Of a printed number, or of one in JSON that is shown with two digits."""
    return one == pytest.approx(other, rel=SHOWN) or f"{one:.2f}" == f"{other:.2f}"


def nearer(changed: float, check) -> bool:
    """Whether a change brings a number that is only possible to the computed one."""
    printed, computed = (float(text.split()[0].replace(",", "")) for text in (check.printed, check.computed))
    return check.verdict == "possible" and abs(changed - computed) < abs(printed - computed)


def files() -> list[tuple[str, str, str]]:
    return [(name, kind(name), one["config"]) for name, one in KINDS.items()] + [
        (name, public(name), "") for name in PUBLIC if name not in REFUSED
    ]


@pytest.mark.parametrize(("name", "text", "config"), files(), ids=lambda one: one[:20] if isinstance(one, str) else "")
def test_a_number_changed_by_three_percent_is_never_called_right(name, text, config):
    """Each checked number, as printed, one at a time; not where 3% are less than its last digit."""
    for check in look(text, spec(config)).checks:
        if check.name == "KV bytes a token" or check.verdict == "differs":
            continue  # computed from two printed ones: see below
        number = float(check.printed.split()[0].replace(",", ""))
        places = [match for match in re.finditer(r"(?<![\d.,])[\d,]*\d(?:\.\d+)?(?![\d,]*\d|\.\d)", text)
                  if same(float(match[0].replace(",", "")), number)]  # fmt: skip
        compared = 0
        for match in places:
            digits = len(match[0].partition(".")[2])
            changed = f"{number * 1.03:.{digits}f}"
            if abs(float(changed) - number) <= 1.5 * 10.0**-digits or nearer(float(changed), check):
                compared += 1
                continue
            again = look(text[: match.start()] + changed + text[match.end() :], spec(config)).checks
            compared += check.name not in {one.name for one in again}  # of two ranks that no longer agree
            for other in again:
                shown = float(other.printed.split()[0].replace(",", ""))
                if other.name == check.name and same(shown, float(changed)):
                    assert other.verdict in ("differs", "possible"), (name, match[0], changed, other)
                    compared += 1
        assert compared, check


def test_bytes_a_token_changed():
    text = kind("tensorrt_llm").replace("8.00", "8.24")
    assert look(text, spec("llama-3.1-8b")).checks[0].verdict == "differs"


WAYS = {
    "ANSI": lambda text: "\n".join(f"\x1b[1;36m{line}\x1b[0;0m" for line in text.splitlines()),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "docker": lambda text: "\n".join(f"vllm-1  | {line}" for line in text.splitlines()),
    "kubectl": lambda text: "\n".join(f"2026-04-05T11:00:00.123456789Z {line}" for line in text.splitlines()),
    "glued": lambda text: text.replace("\n", " "),
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.splitlines()),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name", ["slots_unsaid", "blocks", "long", "stuck", "prefill", "sglang_slots", "filling", "slow"]
)
def test_ways_in_which_lines_arrive(name, way):
    assert named(look(WAYS[way](kind(name)))) == named(look(kind(name)))


def test_two_engines_in_one_file():
    both = kind("slots_unsaid").replace("Engine 000", "Engine 001") + kind("blocks")
    assert set(named(look(both))) == {"slots", "kv_blocks"}


def test_lines_cut_at_the_end_count_as_not_read():
    lines = kind("blocks").splitlines()
    cut = "\n".join([*lines, lines[0][:150]])
    assert named(look(cut)) == ["kv_blocks"]
    assert look(cut).lines == (3, 4)


def test_the_card_gives_the_slots_that_nobody_gave():
    text = kind("slots_unsaid").replace("Running: 32", "Running: 256")
    assert named(look(text, gpu=gpus.gpu("A100"))) == ["slots"]
    assert named(look(kind("slots_unsaid"), gpu=gpus.gpu("A100"))) == []  # 32 of 256: other things hold the queue


def test_a_queue_of_one_line_is_an_arrival():
    one = kind("slots_unsaid").splitlines()[0]
    assert named(look(one)) == []
    assert look(one).cannot_tell


def test_no_known_line_is_refused():
    with pytest.raises(ValueError, match=r"^no line is known here; paste"):
        look("Hello, my server is slow since Tuesday.")


def test_a_cut_benchmark_block_is_refused():
    with pytest.raises(ValueError, match="paste the whole block"):
        look("\n".join(kind("burst").splitlines()[:2]))


PIECES = [line for _, text, _ in files() for line in text.splitlines()] + public("81").splitlines()
TOLD = json.loads((DATA / "told.json").read_text(encoding="utf-8"))
PIECES += [line for one in TOLD for line in one["text"].splitlines()]


@pytest.mark.parametrize("part", range(4))
def test_fuzzed_pastes_are_answered_or_refused_in_a_sentence(part):
    """Lines of all files mixed, cut, doubled and with digits and letters changed."""
    draw = random.Random(part)
    for _ in range(size(60, 2_500)):
        lines = [draw.choice(PIECES) for _ in range(draw.randrange(1, 8))]
        text = draw.choice(["\n", " ", "\r\n", ""]).join(lines)
        for _ in range(draw.randrange(6)):
            at = draw.randrange(len(text) + 1)
            stuff = draw.choice(
                ["", "9" * draw.randrange(400), "-", ".", ",", "\\\n", "\x00", "{", "nan", "%s", "e9", "\u0664"]
            )
            text = text[:at] + stuff + text[at + draw.randrange(9) :]
        try:
            answer = look(text, spec("llama-3.1-8b") if draw.random() < 0.1 else None)
        except ValueError as error:
            assert str(error)
            continue
        assert answer.limits or answer.cannot_tell or answer.notes


def test_a_card_with_nothing_free_is_not_offered_a_share_of_zero():
    (limit,) = look(kind("process_all")).limits
    assert "0.31 of 79.25 GiB are free: less than a hundredth" in limit["evidence"]


def test_the_engine_s_own_words_go_before_those_of_the_allocator():
    text = kind("card_memory") + kind("sampler")
    assert named(look(text)) == ["sampler_memory"]


@pytest.mark.parametrize("width", [60, 80, 100, 140, 175])
def test_a_line_that_a_terminal_broke_is_read_whole(width):
    """In the middle of a word, or at a space that was lost."""
    lines = kind("rising_full").splitlines()
    whole = look("\n".join(lines))
    hard = [line[at : at + width] for line in lines for at in range(0, len(line), width)]
    assert look("\n".join(hard)).limits == whole.limits
    at_spaces = [part for line in lines for part in textwrap.wrap(line, width)]
    assert look("\n".join(at_spaces)).limits == whole.limits


def test_a_broken_line_does_not_take_the_next_one_with_it():
    lines = kind("rising_full").splitlines()
    cut = lines[0][:100]
    assert look("\n".join([cut, *lines])).limits == look("\n".join(lines)).limits


def test_a_length_that_only_large_blocks_explain_is_possible():
    """Of 3.18 GiB of 24 for 262,144 tokens: 34,734; blocks of 528 tokens would make it up to 512 fewer."""
    line = (
        "ValueError: To serve at least one request with the model's max seq len (262144), (24.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (3.18 GiB). Based on the available memory, the "
        "estimated maximum model length is {}."
    )
    checks = {n: look(line.format(n)).checks[0] for n in (34_736, 34_400, 33_000)}
    assert [one.verdict for one in checks.values()] == ["equal", "possible", "possible"]
    assert "blocks of more than 16" in checks[34_400].why
    assert "windows or states" in checks[33_000].why


def test_a_cap_that_nobody_meets_is_a_burst():
    """200 requests under a cap of 200 are all sent at once: the cap holds nobody back."""
    capped = "Maximum request concurrency:             200\nSuccessful requests:"
    assert named(look(kind("burst").replace("Successful requests:", capped))) == ["burst"]
