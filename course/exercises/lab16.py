"""Lab 16, measuring honestly: what it asks, and the mistakes it knows."""

import math

from course.exercises.quiz16 import QUIZ
from course.exercises.spec import Exercise, LabSpec, Mistake, Prediction
from course.scenarios import three_files

NAN = float("nan")


def felt(planned, seconds):
    """TTFT from the plan, for a client with one request in flight: it sends late while an answer is late."""
    free, found = 0.0, []
    for moment, took in zip(planned, seconds, strict=True):
        free = max(free, moment) + took
        found.append(free - moment)
    return found


def _as_written(planned, seconds):
    return list(seconds)


def _never_idle(planned, seconds):
    total, found = 0.0, []
    for moment, took in zip(planned, seconds, strict=True):
        total += took
        found.append(total - moment)
    return found


def _without_its_own(planned, seconds):
    return [whole - took for whole, took in zip(felt(planned, seconds), seconds, strict=True)]


def _one_step_back(planned, seconds):
    """Waits for the answer before, as if that one had been sent on time."""
    found, before = [], 0.0
    for moment, took in zip(planned, seconds, strict=True):
        found.append(max(before, moment) + took - moment)
        before = moment + took
    return found


def _moments(planned, seconds):
    return [moment + whole for moment, whole in zip(planned, felt(planned, seconds), strict=True)]


def ours(tool, value, tokens, ttft):
    """TPOT under the course's definition from what a tool calls the time per token of one request; seconds."""
    if value is None or tokens < 2:
        return NAN
    if tool == "guidellm 0":
        return value * tokens / (tokens - 1)
    if tool in ("guidellm", "llmperf"):
        return (value * tokens - ttft) / (tokens - 1)
    return value


def _ttft_left_in(tool, value, tokens, ttft):
    return ours("guidellm 0" if tool in ("guidellm", "llmperf") else tool, value, tokens, ttft)


def _all_tokens(tool, value, tokens, ttft):
    if value is None or tokens < 2:
        return NAN
    return (value * tokens - ttft) / tokens if tool in ("guidellm", "llmperf") else value


def _null_is_zero(tool, value, tokens, ttft):
    return 0.0 if value is None else ours(tool, value, tokens, ttft)


def _one_token_is_zero(tool, value, tokens, ttft):
    return 0.0 if value is not None and tokens < 2 else ours(tool, value, tokens, ttft)


def _ttft_everywhere(tool, value, tokens, ttft):
    return ours("llmperf" if tool == "guidellm 0" else tool, value, tokens, ttft)


def fewest_requests(percent: float, confidence: float) -> int:
    """The smallest n for which the largest of n independent values is above the percentile with this confidence."""
    return math.ceil(math.log(1 - confidence) / math.log(percent / 100))


_nightly, _peak = three_files.told("nightly"), three_files.told("peak")
_gateway = three_files.told("gateway")
_asked_for = _peak["num_prompts"] / _peak["request_rate"]
_e2e = _peak["mean_e2el_ms"] / 1e3
_tokens_each = _gateway["total_output_tokens"] / _gateway["completed"]

FROM_THE_PLAN = "Each answer has to be compared with the moment at which its own request was planned."

LAB = LabSpec(
    number="16",
    title="Measuring honestly",
    minutes=50,
    predictions=(
        Prediction(
            "stall",
            "A load test plans 2,000 requests at 12 a second and keeps at most 16 in flight. Once, in the middle, the "
            "engine stands still for 5 seconds. What does the test report as the p99 of TTFT?",
            (
                "about 5 s: everybody who waited is in the percentile",
                "about 2 s: the wait was anything from 0 to 5 s",
                "about 25 ms, as without the stall",
                "it cannot be said without running it several times",
            ),
            "c",
            "24 ms, and users would have seen 4.4 s. During the stall 60 requests were due, 3% of the test. The client "
            "had most of its 16 out already, so two requests above 1 s are all that it wrote down, the document "
            "included. It held the others back until the engine ran again: their clocks began when the trouble was "
            "over.",
        ),
        Prediction(
            "weights",
            "300 requests arrive within 2.5 seconds. The tool reports a mean TPOT of 24 ms and, for the same run, a "
            "mean ITL of 18 ms. What is wrong?",
            (
                "nothing: they weigh the same gaps differently",
                "the TPOT includes the time to the first token",
                "some gaps are missing: tokens arrived in pieces",
                "the two were measured at different places",
            ),
            "a",
            "TPOT counts every request alike, ITL every gap. Short answers ended while the batch was still full and "
            "saw slow steps only; long ones went on when it had emptied. The long ones have most of the gaps, so they "
            "pull the mean of the gaps down.",
        ),
        Prediction(
            "p99itl",
            "One prompt in 50 is a document of 16,384 tokens, and all answers stand still for 0.4 s while it is "
            "computed. The p99 of ITL is 10 ms. How many of the requests felt such a stall?",
            ("below 1%: the p99 says so", "about 2%, as many as there are documents", "about 5%", "nearly one in five"),
            "d",
            "18%. ITL has one value a token, and a request has over a hundred of them. A stall is one gap of one "
            "request and vanishes among 250,000. Count requests by their longest gap instead.",
        ),
    ),
    exercises=(
        Exercise(
            "felt",
            "from the plan",
            solution=felt,
            probes=(
                ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.1, 3.5, 0.2, 0.2, 0.2, 0.2]),
                ([0.0, 0.5, 1.0, 5.0, 5.5], [0.75, 0.25, 0.5, 0.25, 1.0]),
                ([2.0, 2.1, 2.2], [1.0, 1.0, 1.0]),
            ),
            mistakes=(
                Mistake(
                    _as_written,
                    "Those are the times the client wrote down. A request that had to wait for the answer before it "
                    "was sent late, and that wait is missing.",
                ),
                Mistake(
                    _never_idle,
                    "You add up all that came before, as if the client were never ahead of its plan. When the answer "
                    "is there early, the next request goes out at its planned moment.",
                ),
                Mistake(
                    _one_step_back,
                    "You let a request wait for the one before, but that one may have been sent late itself. Keep the "
                    "moment at which it was really answered.",
                ),
                Mistake(
                    _without_its_own,
                    "That is how late each request was sent. Its own time until the first token comes on top.",
                ),
                Mistake(_moments, f"Those are the moments of the answers on the clock of the test. {FROM_THE_PLAN}"),
            ),
            hint="Walk through the requests and carry one number along: when the client was free again.",
        ),
        Exercise(
            "ours",
            "into our definition",
            solution=ours,
            probes=(
                ("vllm", 0.020, 100, 0.3),
                ("guidellm 0", 0.018, 10, 0.3),
                ("guidellm", 0.025, 40, 0.4),
                ("llmperf", 0.050, 20, 0.5),
                ("llmperf", 0.4, 1, 0.4),
                ("vllm", 0.0, 1, 0.2),
                ("guidellm", None, 50, 0.3),
            ),
            rtol=1e-3,
            mistakes=(
                Mistake(
                    _ttft_left_in,
                    "For two of the tools the value times the tokens is the whole E2E. What is in E2E that is not in "
                    "the time between first and last token?",
                ),
                Mistake(
                    _all_tokens,
                    "You divide by all the tokens. How many gaps lie between n tokens?",
                ),
                Mistake(
                    _null_is_zero,
                    "None means that nobody measured it. As a zero it would pull every mean down: give float('nan').",
                ),
                Mistake(
                    _one_token_is_zero,
                    "An answer of one token has no gap, so it has no time per gap, not one of zero: give float('nan').",
                ),
                Mistake(
                    _ttft_everywhere,
                    "You take TTFT off where it never was: version 0 of guidellm begins at the first token.",
                ),
            ),
            hint="Undo the tool's division first: what seconds are left? Then divide by the gaps.",
        ),
        Exercise(
            "samples",
            "how many requests a p99 needs",
            solution=fewest_requests(99, 0.95),
            rtol=1e-3,
            mistakes=(
                Mistake(
                    100,
                    "Of that many, one is expected above the p99, but the chance that none is, 0.99 to that power, is "
                    "still 37%.",
                ),
                Mistake(
                    fewest_requests(99, 0.99),
                    "That makes it 99% sure. The question asks for 95%.",
                ),
                Mistake(
                    fewest_requests(95, 0.95),
                    "That is the number for a p95: the chance that one value is below the p99 is 0.99.",
                ),
                Mistake(
                    fewest_requests(99, 0.95) + 1,
                    "With one fewer it is still 95% sure.",
                ),
                Mistake(
                    fewest_requests(99, 0.95) - 1,
                    "Just below 95%: round up.",
                ),
                Mistake(
                    fewest_requests(99, 0.05),
                    "With so few the chance that one is above the p99 is 5%. The chance that none is must be 5%.",
                ),
            ),
            hint="The largest of n is below the p99 only if all n are. What is the chance of that?",
        ),
        Exercise(
            "nightly",
            "three files: nightly.json",
            solution=_nightly["completed"] / _nightly["duration"],
            rtol=2e-3,
            mistakes=(
                Mistake(
                    _nightly["request_throughput"],
                    "That is what the file says. Divide its own counts by its own seconds: which requests are in it?",
                ),
                Mistake(
                    (_nightly["completed"] - _nightly["failed"]) / _nightly["duration"],
                    "The failed ones are not among the completed: you took them off twice.",
                ),
                Mistake(
                    _nightly["output_throughput"],
                    "Those are tokens a second. The question is requests.",
                ),
                Mistake(
                    _nightly["failed"] / _nightly["duration"],
                    "Those are the failures a second.",
                ),
            ),
            hint="Compare request_throughput with completed, failed and duration.",
        ),
        Exercise(
            "gateway",
            "three files: gateway.jsonl",
            solution=NAN,
            rtol=1e-3,
            mistakes=(
                Mistake(0.0, "No engine makes tokens in no time. Which two other times in the file are equal?"),
                Mistake(
                    _gateway["mean_e2e_latency_ms"] / _tokens_each,
                    "That spreads the wait for the first token over all tokens: it is llmperf's number, and it would "
                    "be ours only if the first token took no longer than any other.",
                ),
                Mistake(
                    _gateway["mean_e2e_latency_ms"] / (_tokens_each - 1),
                    "That takes TTFT for zero. The file does not say when the first token was made, only that "
                    "everything arrived together.",
                ),
                Mistake(
                    1e3 / _gateway["output_throughput"],
                    "That is 1 / throughput of all requests together. One request is slower than that by the number "
                    "that run at the same time.",
                ),
            ),
            hint="Put mean_ttft_ms beside mean_e2e_latency_ms. Where a file cannot say, the answer is float('nan').",
        ),
        Exercise(
            "peak",
            "three files: peak.json",
            solution=_peak["duration"] - _e2e - _asked_for,
            rtol=1e-2,
            mistakes=(
                Mistake(
                    _peak["duration"] - _asked_for,
                    "That is how late it was answered. It was sent an E2E earlier.",
                ),
                Mistake(
                    0,
                    "Compare the rate that was asked for with the one that was reached: where did the others stay?",
                ),
                Mistake(
                    _peak["duration"] - _e2e, "That is when it was sent, on the clock of the test. When was it due?"
                ),
                Mistake(_asked_for, "That is when it was due. When was it really sent?"),
                Mistake(_e2e, "That is the mean E2E, which begins when a request is sent."),
                Mistake(
                    _peak["p99_ttft_ms"] / 1e3,
                    "That is the p99 of TTFT in the file, which begins when a request is sent.",
                ),
            ),
            hint="When was the last of the requests due at the rate asked for, and when did it go out?",
        ),
    ),
    quiz=QUIZ,
)
