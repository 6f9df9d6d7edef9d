"""Lab 16, measuring honestly: what it asks, and the mistakes it knows."""

from course.exercises.spec import Exercise, LabSpec, Mistake, Objective, Prediction
from course.lessons.lab16 import flaws, honest, tasks
from course.lessons.lab16.quiz import EARLIER, QUIZ, TICKET

PLAN = (0, 1, 2, 3)  # s
TOOK, TOOK_TWIN = (0.5, 3.25, 0.5, 0.25), (0.25, 2.5, 0.75, 0.5)  # s, of the first exercise and its twin
FELT = (
    ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.1, 3.5, 0.2, 0.2, 0.2, 0.2]),
    ([0.0, 0.5, 1.0, 5.0, 5.5], [0.75, 0.25, 0.5, 0.25, 1.0]),
    ([2.0, 2.1, 2.2], [1.0, 1.0, 1.0]),
)
TOLD, TOKENS, TTFT = 50, 20, 525  # ms a token, tokens, ms, of the second exercise
TOLD_TWIN, TTFT_TWIN = 38, 100


def fourth(took: tuple[float, ...]) -> float:
    """From plan to first token of the fourth request [s]."""
    return honest.felt_ttft(PLAN, took)[3]


def _fourth_mistakes(took: tuple[float, ...]) -> tuple[Mistake, ...]:
    whole = fourth(took)
    return (
        Mistake(took[3], "That is what the client wrote down. Its wait before it was sent is missing."),
        Mistake(whole - took[3], "That is how late it was sent. Its own time comes on top."),
        Mistake(whole + PLAN[3], "That is the moment on the clock of the test. When was it planned?"),
        Mistake(sum(took) - PLAN[3], "The first request leaves the client idle for a while. When is the second sent?"),
    )


LAB = LabSpec(
    number="16",
    title="Measuring honestly",
    needs="Labs 03 and 07, and lists in Python. No GPU.",
    objectives=(
        Objective(
            "compute what users felt from what a client wrote down",
            task="unseen", exercise="felt", retest="18:felt",
        ),
        Objective(
            "diagnose a client that holds requests back",
            task="held", exercise="decision", retest="17:held",
        ),
        Objective(
            "convert a tool's time per token into TPOT",
            task="more", exercise="ours", retest="15:tools",
        ),
    ),
    earlier=EARLIER,
    terms=("client", "in flight", "open loop", "closed loop", "coordinated omission", "piece"),
    predictions=(
        Prediction(
            "stall",
            "A client plans 2,000 requests at 12 a second, at most 16 in flight. The engine stalls once, for 5.5 s. "
            "Which p99 of TTFT does it report?",
            (
                (
                    "about 5 s",
                    "client-sees-what-users-see",
                    "Most requests that waited had not been sent yet.",
                ),
                (
                    "about half of the stall",
                    "waits-are-spread-evenly",
                    "Users would wait like that. This client held requests back.",
                ),
                "about 35 ms",
                (
                    "a different one in each run",
                    "more-runs-tell",
                    "Every run of this client leaves out the same requests.",
                ),
            ),
            "c",
            "For users it was 4.8 s. 66 requests were due in the stall, and most were sent after it.",
        ),
        Prediction(
            "weights",
            "300 requests arrive within 2.5 s. Mean TPOT is 30 ms, mean ITL 22 ms. What is wrong?",
            (
                "nothing: they weigh gaps differently",
                (
                    "TPOT includes the first token",
                    "tpot-holds-ttft",
                    "Some tools do that. Here both use the same gaps.",
                ),
                (
                    "gaps are missing: tokens came in pieces",
                    "pieces-explain-it",
                    "Pieces make gaps fewer and longer, which raises the mean ITL.",
                ),
                (
                    "they were measured in different places",
                    "measured-elsewhere",
                    "The client computes both from the same arrival times of tokens.",
                ),
            ),
            "a",
            "Short answers end while steps are slow. Long ones go on in faster steps, and have most of the gaps.",
        ),
    ),
    tasks=(*tasks.CLOCKS, *tasks.TOOLS),
    exercises=(
        Exercise(
            "late",
            "the fourth request",
            solution=fourth(TOOK),
            rtol=1e-3,
            mistakes=_fourth_mistakes(TOOK),
            hint="When is the third request answered? The fourth is sent at that moment, or when it was planned.",
            plain="Add up from the second request on: it is sent as planned, and each later one when the one before is"
            " answered. Subtract the planned moment of the fourth from that of its answer.",
            twin=Exercise(
                "late",
                "the fourth request",
                question="The same plan; the client writes down 0.25, 2.5, 0.75 and 0.5 s. How many seconds after its "
                "plan "
                "did the fourth request get its first token?",
                solution=fourth(TOOK_TWIN),
                rtol=1e-3,
                mistakes=_fourth_mistakes(TOOK_TWIN),
            ),
        ),
        Exercise(
            "ours",
            "into our definition",
            solution=honest.tpot_of(TOLD, TOKENS, TTFT),
            mistakes=(
                Mistake(
                    TOLD * TOKENS / (TOKENS - 1),
                    "That is E2E over the gaps. What is in E2E that is not between the first and the last token?",
                ),
                Mistake((TOLD * TOKENS - TTFT) / TOKENS, "You divide by all tokens. How many gaps are between them?"),
                Mistake(TOLD * TOKENS - TTFT, "That is all gaps together. How many are there?"),
                Mistake(TOLD, "That is what the tool says. What did it divide, and by what?"),
            ),
            hint="Undo the tool's division first: what time is left? Then divide by the gaps.",
            plain="Multiply by the tokens, which gives E2E. Subtract TTFT, and divide by the gaps between the tokens.",
            twin=Exercise(
                "ours",
                "into our definition",
                question="guidellm 0.3 divides the time from first to last token by all tokens. It says 38 ms "
                "for an answer of 20 tokens with a TTFT of 100 ms. What is TPOT, in ms?",
                solution=TOLD_TWIN * TOKENS / (TOKENS - 1),
                mistakes=(
                    Mistake(honest.tpot_of(TOLD_TWIN, TOKENS, TTFT_TWIN), "This tool's value does not include TTFT."),
                    Mistake(TOLD_TWIN, "That is what the tool says. How many gaps are between the tokens?"),
                ),
            ),
        ),
        Exercise(
            "felt",
            "from the plan",
            solution=honest.felt_ttft,
            probes=FELT,
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
                    honest.late,
                    "That is how late each request was sent. Its own time until the first token comes on top.",
                ),
                Mistake(
                    honest.moments,
                    "Those are the moments of the answers on the clock of the test. Each answer has to be compared with"
                    " the moment at which its own request was planned.",
                ),
            ),
            hint="Walk through the requests and carry one number along: when the client was free again.",
            plain="Keep the moment at which the client is free. A request is sent at that moment, or when it was "
            "planned if that is later, and is answered after its own time. Subtract its plan from the moment of the "
            "answer.",
            twin=Exercise(
                "felt",
                "how late each was sent",
                question="Return how late each request was sent, in seconds; the arguments are the same.",
                solution=honest.late,
                probes=FELT,
                mistakes=(
                    Mistake(honest.felt_ttft, "That is from plan to answer. When was each request sent?"),
                    Mistake(honest.as_written, "Those are the times the client wrote down, from sending to answer."),
                ),
            ),
        ),
        flaws.DECISION,
    ),
    ticket=TICKET,
    quiz=QUIZ,
)  # fmt: skip
