"""Lab 16, measuring honestly: questions from earlier labs, the ticket of "Break it", and the quiz at the end."""

from course.exercises.spec import Question, Ticket

EARLIER = (
    Question(
        "gaps",
        "A long prompt stops all chats for 0.4 s, every 20 s. Which number shows it?",
        (
            ("the p99 of ITL over all gaps", "A chat has hundreds of gaps, and the stop is one of them."),
            ("the mean TPOT of the chats", "One gap of 0.4 s hardly moves a mean over hundreds of gaps."),
            ("the share of chats with a gap above 0.1 s", "It counts each chat once."),
        ),
        "c",
        lab="07",
    ),
    Question(
        "little",
        "16 requests are in the system, and each stays for 0.8 s. How many are answered in a second?",
        (
            ("12.8", "That is 16 x 0.8. Little's law says L = rate x W."),
            ("20", "rate = L / W = 16 / 0.8."),
            ("0.05", "That is 0.8 / 16: seconds for each request."),
        ),
        "b",
        lab="03",
    ),
)

TICKET = Ticket(
    story='From the release team: "Every night a client with --max-concurrency 16 tests seven rates. The p99 of TTFT '
    'is 35 ms at 12 requests/s and 26 ms at 40. Can we promise 30 ms at 40?"',
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                (
                    "The engine makes better batches under load.",
                    "It answers 18.5 requests/s, whether asked for 20 or for 40.",
                ),
                ("The client cannot send as planned.", "All 16 are in flight."),
                ("The engine drops what it cannot serve.", "All 2,000 are answered."),
            ),
            "b",
        ),
        Question(
            "measure",
            "What do you measure next?",
            (
                ("a higher percentile of TTFT", "Its clock starts when a request is sent, as for the p99."),
                ("how busy the GPU is at each rate", "Busy or not, it does not show where requests wait."),
                ("when each was planned and sent", "At 40 requests/s the last is sent 55 s after its plan."),
            ),
            "c",
        ),
        Question(
            "repair",
            "What do you change in the test?",
            (
                ("leave out the limit", "At 40 requests/s the p99 is 86 ms then."),
                ("halve the limit", "Then even more requests wait in the client."),
                ("send more requests", "The last of them would be sent even later."),
            ),
            "a",
        ),
    ),
    setting="It was run_test(rate, max_concurrency=16, document_tokens=0).",
)

QUIZ = (
    Question(
        "closed",
        "A test always keeps 64 requests in flight. What does it do when the engine gets twice as slow?",
        (
            ("its queue grows", "It cannot: a request is sent only when another is answered."),
            ("only its latency changes", "64 / E2E is the rate, so it changes with the latency."),
            ("it sends half as many a second", "The rate is 64 / E2E."),
        ),
        "c",
    ),
    Question(
        "sign",
        "What shows that a client held requests back?",
        (
            ("a p99 far above the median", "A queue in the engine does that. A held request has a short TTFT."),
            ("a lower rate than asked for", "And the limit is always reached."),
            ("an ITL below the TPOT", "Both begin after the first token, and so after sending."),
        ),
        "b",
    ),
    Question(
        "four",
        "A server now sends four tokens in a piece. What changes?",
        (
            ("vLLM's ITL, about fourfold", "It counts the gaps between pieces."),
            ("TPOT, about fourfold", "The first and last token come as before, and there are as many."),
            ("nothing, since steps are the same", "The client sees pieces, and some tools count those."),
        ),
        "a",
    ),
    Question(
        "tools",
        "Two tools report 22.7 and 24.1 ms a token for one run. What do you do first?",
        (
            ("take the mean of both", "The mean of two quantities is neither of them."),
            ("run both until they agree", "They will not: what they compute differs."),
            ("look up what each divides", "One of them has TTFT in it."),
        ),
        "c",
    ),
)
