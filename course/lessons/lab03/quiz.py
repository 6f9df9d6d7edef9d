"""Lab 03, Little's law: questions from labs 01 and 04, the ticket of "Break it", and the quiz at the end."""

from course.exercises.spec import Question, Ticket

EARLIER = (
    Question(
        "whole",
        "TTFT is 0.5 s, TPOT 20 ms. When does token 51 come?",
        (
            ("after 1.5 s", "0.5 + 50 x 0.02."),
            ("after 1.52 s", "51 tokens have 50 gaps."),
            ("after 1.02 s", "TTFT comes first."),
        ),
        "a",
        lab="01",
    ),
    Question(
        "padding",
        "A static batch has answers of 10 and 4 tokens. How much is padding?",
        (
            ("14", "Those are the wanted ones: 10 + 4."),
            ("6", "2 x 10 are paid for."),
            ("20", "Those are all that are paid for: 2 x 10."),
        ),
        "b",
        lab="04",
    ),
)

TICKET = Ticket(
    story='"It is 18:42 and 12 requests/s arrive, as on any evening. Usually a first token takes 20 ms, now more '
    'than a minute. Nothing was deployed. What is broken?"',
    questions=(
        Question(
            "cause",
            "What is the cause?",
            (
                ("The engine has become slower.", "It finishes 16 requests/s, as many as it ever could."),
                ("Answers are longer than usual.", "Then fewer than 16 would finish each second."),
                ("It works off a queue from earlier.", "More finish than arrive."),
            ),
            "c",
        ),
        Question(
            "measure",
            "What do you look at next?",
            (
                ("how many requests waited", "It rose to 4,257 until 18:30, and has fallen since."),
                ("the GPU utilisation", "It is high with or without a queue."),
                ("how long steps took", "A step of a full batch takes as long as always."),
            ),
            "a",
        ),
        Question(
            "repair",
            "What do you do?",
            (
                ("make room for a longer queue", "16 leave per second, so a longer queue is a longer wait."),
                (
                    "refuse newcomers while the queue is long",
                    "With at most 160 waiting, nobody waits longer than 10 s.",
                ),
                ("give clients a longer timeout", "They wait just as long, and more of them do."),
            ),
            "b",
        ),
    ),
    setting="From 18:10 to 18:30 a campaign sent 20 requests/s. Capacity is 16.3: the queue grew by 3.7 each second "
    "and drains by 4.3, until 18:47.",
)

QUIZ = (
    Question(
        "dashboard",
        "Clients measure a mean E2E of 2.5 s. The engine finishes 16 requests/s, with 30 running and 2 waiting on "
        "average. What follows?",
        (
            ("The arrivals are not Poisson.", "The law asks nothing of arrivals."),
            (
                "8 are outside the engine.",
                "16 x 2.5 = 40 are in the system: a proxy, say, holds the rest.",
            ),
            ("8 wait for a slot.", "Requests that wait for a slot are in the engine, and counted."),
        ),
        "b",
    ),
    Question(
        "closed",
        "A test keeps 64 requests in flight. A faster engine serves 32 requests/s instead of 16. What happens to the "
        "mean E2E?",
        (
            ("it halves", "From 4 s to 2 s: the test fixes L, and W = L / λ."),
            ("it stays", "L is fixed and λ doubled, so W changed."),
            ("it doubles", "More requests/s at the same L is a shorter stay."),
        ),
        "a",
    ),
    Question(
        "early",
        "Which number shows that the p99 of TTFT is about to leave its floor?",
        (
            ("the mean TTFT", "When 1 in 100 waits, it is only about a tenth longer than at 10 requests/s."),
            ("GPU utilisation", "The GPU is busy in every step, at any load."),
            ("the mean E2E", "It grows with the batch, whether anybody waits or not."),
            ("arrivals that find no slot", "Once they are more than 1%, the p99 is a wait."),
        ),
        "d",
    ),
    Question(
        "grow",
        "Capacity is 18 requests/s, and 20 arrive for one hour. How long does the last one wait?",
        (
            ("about 0.1 s", "Load is 11% too high, and that adds up: the queue grows by 2 each second."),
            ("about one hour", "The queue grows by the excess, not by all arrivals."),
            ("about 400 s", "7,200 are ahead of it, and 18 leave each second."),
        ),
        "c",
    ),
)
