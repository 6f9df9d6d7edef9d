"""Lab 01, the first token: questions from lab 00, the ticket of "Break it", and the quiz at the end."""

from course.exercises.spec import Question, Ticket

EARLIER = (
    Question(
        "behind-the-p99",
        "5 requests come each second. How many in an hour wait longer than the p99 of TTFT?",
        (
            ("18 requests", "That is one in a thousand."),
            ("180 requests", "5 x 3,600 come, and one in a hundred is above the p99."),
            ("900 requests", "One in twenty is above the p95."),
        ),
        "b",
        lab="00",
    ),
    Question(
        "first-step",
        "Which step brings the first token of an answer?",
        (
            ("the first decode", "It brings the second token."),
            ("none: it is there at once", "The prompt has to be computed first."),
            ("the prefill", "It computes the prompt, and brings one token."),
        ),
        "c",
        lab="00",
    ),
)

TICKET = Ticket(
    story='From support: "We promise a p99 of TTFT of 1 s. Over half an hour the dashboard says 0.7 s, the mean of '
    'three replicas. But 6 in 100 waited longer. Who is wrong?"',
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                ("A is full, and the mean hides it.", "A has a p99 of 2 s, and most requests."),
                ("The slowest requests are outliers.", "One in nine of A's requests waits longer than 1 s."),
                ("All three need more slots.", "B and C run about 9 of 32."),
            ),
            "a",
        ),
        Question(
            "measure",
            "What do you measure next?",
            (
                ("the mean TTFT of each replica", "It is 0.3 s for A. Means say nothing of the slowest."),
                ("the median of the three p99s", "It is the p99 of one replica with few requests."),
                ("the p99 over all requests", "It is 1.9 s."),
            ),
            "c",
        ),
        Question(
            "repair",
            "What do you change?",
            (
                ("restart A, which is slow", "Its steps are as fast as they can be with 30 requests."),
                ("give all the same rate", "With 9 requests/s each, the p99 is 35 ms."),
                ("promise 2 s instead of 1 s", "B and C would stay idle, and A full."),
            ),
            "b",
        ),
    ),
    setting="The router sent 15 requests/s to A, and 6 each to B and C.",
)

QUIZ = (
    Question(
        "stall",
        "An answer has 200 tokens. One step takes 400 ms, the others 6 ms. Which number shows that?",
        (
            ("its TTFT", "The first token came before."),
            ("its TPOT", "It rises from 6 to 8 ms: the long gap is spread over 199."),
            ("its longest ITL", "It is 400 ms."),
        ),
        "c",
    ),
    Question(
        "faster",
        "A larger batch raises the GPU's tokens/s by half. What does the reader of one answer see?",
        (
            ("tokens as fast, or slower", "A fuller step takes longer, if anything."),
            ("tokens at 1.5 times the speed", "More answers at a time, and none of them faster."),
            (
                "a first token that comes sooner",
                "The prefill takes as long. A shorter queue would help, but is there one?",
            ),
        ),
        "a",
    ),
    Question(
        "front",
        "Users report a mean TTFT of 300 ms, the engine 35 ms. Where do you look first?",
        (
            ("at the engine's slots", "A queue for slots is in the 35 ms."),
            ("in front of the engine", "A window there, say, takes the rest."),
            ("at the length of prompts", "Their prefill is in the 35 ms."),
        ),
        "b",
    ),
    Question(
        "sample",
        "What decides the p99 of a test of 100 requests?",
        (
            ("its 98 shortest", "Any of them may be shorter, and the p99 stays."),
            ("its mean and its spread", "A mean and a spread do not give the tail."),
            ("its two longest", "It lies between them."),
        ),
        "c",
    ),
)
