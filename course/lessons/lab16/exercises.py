"""Lab 16, measuring honestly: what it asks, and the mistakes it knows."""

from course.exercises.spec import Exercise, LabSpec, Mistake, Prediction
from course.lessons.lab16 import flaws, honest
from course.lessons.lab16.quiz import QUIZ

FROM_THE_PLAN = "Each answer has to be compared with the moment at which its own request was planned."

LAB = LabSpec(
    number="16",
    title="Measuring honestly",
    predictions=(
        Prediction(
            "stall",
            "A load test plans 2,000 requests at 12 a second and keeps at most 16 in flight. Once, in the middle, the "
            "engine computes a long document, and nobody else gets a first token for 5.5 seconds. What does the test "
            "report as the p99 of TTFT?",
            (
                (
                    "5 s or so: everybody who waited is in the percentile",
                    "client-sees-what-users-see",
                    "Those who waited were not sent, and their clocks had not begun.",
                ),
                (
                    "half of that: the wait was anything from 0 to 5.5 s",
                    "waits-are-spread-evenly",
                    "That would be so for users who came by themselves. The client had held nearly all of them back.",
                ),
                "about 35 ms, as without the stall",
                (
                    "it cannot be said without running it several times",
                    "more-runs-tell",
                    "Every run of this client leaves out the same people.",
                ),
            ),
            "c",
            "35 ms, and users would have seen 4.8 s. During the stall 66 requests were due, 3% of the test. The client "
            "had most of its 16 out already, so two requests above 1 s are all that it wrote down, the document "
            "included. It held the others back until the document was done: their clocks began when the trouble was "
            "over.",
        ),
        Prediction(
            "weights",
            "300 requests arrive within 2.5 seconds. The tool reports a mean TPOT of 30 ms and, for the same run, a "
            "mean ITL of 22 ms. What is wrong?",
            (
                "nothing: they weigh the same gaps differently",
                (
                    "the TPOT includes the time to the first token",
                    "tpot-holds-ttft",
                    "Some tools do that. Here both means are made of the same gaps.",
                ),
                (
                    "some gaps are missing: tokens arrived in pieces",
                    "pieces-explain-it",
                    "Pieces make gaps fewer and longer, which raises the mean ITL and does not lower it.",
                ),
                (
                    "the two were measured at different places",
                    "measured-elsewhere",
                    "The client computes both from the same times of arrival.",
                ),
            ),
            "a",
            "TPOT counts every request alike, ITL every gap. Short answers ended while the batch was still full and "
            "saw slow steps only; long ones went on when it had emptied. The long ones have most of the gaps, so they "
            "pull the mean of the gaps down.",
        ),
        Prediction(
            "p99itl",
            "One prompt in 50 is a document of 16,384 tokens, and while it is computed, in two steps, all answers "
            "stand still for 0.26 and 0.38 s. The p99 of ITL is 15 ms. How many of the requests felt such a stall?",
            (
                (
                    "below 1%: the p99 says so",
                    "p99-is-a-share-of-people",
                    "It is a share of gaps. A request has so many of them that its worst hardly counts.",
                ),
                (
                    "about 2%, as many as there are documents",
                    "one-victim-a-cause",
                    "A document stops everybody who streams at that moment, and that is many people.",
                ),
                (
                    "about 5%",
                    "one-victim-a-cause",
                    "A document stops everybody who streams at that moment, and that is many people.",
                ),
                "nearly one in five",
            ),
            "d",
            "19%. ITL has one value a token, and a request has over a hundred of them. A stall is one gap of one "
            "request and vanishes among 250,000. Count requests by their longest gap instead.",
        ),
    ),
    exercises=(
        Exercise(
            "felt",
            "from the plan",
            solution=honest.felt_ttft,
            probes=(
                ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.1, 3.5, 0.2, 0.2, 0.2, 0.2]),
                ([0.0, 0.5, 1.0, 5.0, 5.5], [0.75, 0.25, 0.5, 0.25, 1.0]),
                ([2.0, 2.1, 2.2], [1.0, 1.0, 1.0]),
            ),
            mistakes=(
                Mistake(
                    honest.as_written,
                    "Those are the times the client wrote down. A request that had to wait for the answer before it "
                    "was sent late, and that wait is missing.",
                ),
                Mistake(
                    honest.never_idle,
                    "You add up all that came before, as if the client were never ahead of its plan. When the answer "
                    "is there early, the next request goes out at its planned moment.",
                ),
                Mistake(
                    honest.one_step_back,
                    "You let a request wait for the one before, but that one may have been sent late itself. Keep the "
                    "moment at which it was really answered.",
                ),
                Mistake(
                    honest.without_its_own,
                    "That is how late each request was sent. Its own time until the first token comes on top.",
                ),
                Mistake(
                    honest.moments, f"Those are the moments of the answers on the clock of the test. {FROM_THE_PLAN}"
                ),
            ),
            hint="Walk through the requests and carry one number along: when the client was free again.",
            plain="Keep the moment at which the client is free. A request is sent at that moment, or when it was "
            "planned if that is later, and is answered after its own time. Take its plan off the answer.",
        ),
        Exercise(
            "ours",
            "into our definition",
            solution=honest.ours,
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
                    honest.ttft_left_in,
                    "For two of the tools the value times the tokens is the whole E2E. What is in E2E that is not in "
                    "the time between first and last token?",
                ),
                Mistake(
                    honest.all_tokens,
                    "You divide by all the tokens. How many gaps lie between n tokens?",
                ),
                Mistake(
                    honest.null_is_zero,
                    "None means that nobody measured it. As a zero it would pull every mean down: give float('nan').",
                ),
                Mistake(
                    honest.one_token_is_zero,
                    "An answer of one token has no gap, so it has no time per gap, not one of zero: give float('nan').",
                ),
                Mistake(
                    honest.ttft_everywhere,
                    "You take TTFT off where it never was: version 0 of guidellm begins at the first token.",
                ),
            ),
            hint="Undo the tool's division first: what seconds are left? Then divide by the gaps.",
            plain="Multiply by what the tool divided by, which gives back seconds. Take TTFT off where they include"
            " it, and divide by the gaps between the tokens. Where there is no gap, or nothing was measured, "
            "it is NaN.",
        ),
        Exercise(
            "samples",
            "how many requests a p99 needs",
            solution=honest.fewest_requests(99, 0.95),
            rtol=1e-3,
            mistakes=(
                Mistake(
                    100,
                    "Of that many, one is expected above the p99, but the chance that none is, 0.99 to that power, is "
                    "still 37%.",
                ),
                Mistake(
                    honest.fewest_requests(99, 0.99),
                    "That makes it 99% sure. The question asks for 95%.",
                ),
                Mistake(
                    honest.fewest_requests(95, 0.95),
                    "That is the number for a p95: the chance that one value is below the p99 is 0.99.",
                ),
                Mistake(
                    honest.fewest_requests(99, 0.95) + 1,
                    "With one fewer it is still 95% sure.",
                ),
                Mistake(
                    honest.fewest_requests(99, 0.95) - 1,
                    "Just below 95%: round up.",
                ),
                Mistake(
                    honest.fewest_requests(99, 0.05),
                    "With so few the chance that one is above the p99 is 5%. The chance that none is must be 5%.",
                ),
            ),
            hint="The largest of n is below the p99 only if all n are. What is the chance of that?",
            plain="The chance that all of n are below the percentile is its share to the power of n. Raise n until "
            "that chance is as small as the question allows.",
        ),
        Exercise(
            "files",
            "three files, one flaw each",
            solution=flaws.RIGHT,
            evaluate=flaws.first_wrong,
            mistakes=(
                *(
                    Mistake(flaws.RIGHT | {name: value}, f"{name}: {hint}")
                    for name, wrong in flaws.READ_INSTEAD.items()
                    for value, hint in wrong
                ),
                Mistake(
                    flaws.RIGHT | {"gateway": None, "peak": None},
                    "What you filled in is right. Go on with the files that are still open.",
                ),
            ),
            hint="Compare rates with the file's own counts and seconds, TTFT with E2E, and the rate that was asked for "
            "with the one that was reached.",
            plain="Do the divisions of each file again: requests by seconds, tokens by seconds. Where the file "
            "prints another value, that is its flaw. Then hold TTFT against E2E, and the rate reached against"
            " the rate asked for.",
        ),
    ),
    quiz=QUIZ,
)
