"""Lab 03, Little's law: the quiz at its end."""

from course.exercises.spec import Question

QUIZ = (
    Question(
        "dashboard",
        "vLLM's gauges show 34 requests running and 6 waiting, steadily. 16 requests finish per second. What is"
        " the mean E2E?",
        (
            ("2.1 s", "That is 34 / 16: only those running. W covers the whole stay if L counts everybody."),
            ("2.5 s", "W = L / rate = 40 / 16. No timestamp of any request was needed."),
            ("0.38 s", "6 / 16 is the mean time spent waiting: Little's law for the queue alone."),
            (
                "one cannot know without traces",
                "One can: L and the rate are enough, for any policy and any lengths.",
            ),
        ),
        "b",
    ),
    Question(
        "closed",
        "A load test keeps exactly 64 requests in flight and measures 16 requests/s. The engine gets twice as "
        "fast and the test now measures 32 requests/s. What happened to the mean E2E?",
        (
            ("it halved", "From 4 s to 2 s: L is fixed at 64 by the test, so W = 64 / rate."),
            ("it stayed the same", "L is fixed and the rate doubled, so W must have changed."),
            ("it depends on the queue", "With L and the rate known nothing is left to depend on."),
            ("it doubled", "A higher rate at the same L means a shorter stay."),
        ),
        "a",
    ),
    Question(
        "early",
        "Which number warns first that the p99 of TTFT is about to leave the floor?",
        (
            (
                "the mean TTFT, since every wait is part of it",
                "It moves late: one slow request in a hundred hardly changes a mean.",
            ),
            (
                "GPU utilisation, when it comes near its limit",
                "The GPU is busy in every step, at 30% of capacity as at 95%.",
            ),
            ("the mean E2E, which holds queue, prefill, decode", "It rises slowly with the batch and shows no knee."),
            (
                "the share of arrivals that find all slots taken",
                "When it passes 1%, the p99 sees the queue: here between 11 and 12 requests/s.",
            ),
        ),
        "d",
    ),
    Question(
        "grow",
        "Capacity is 18 requests/s and 20 arrive, for one hour. How long does a request wait that comes at the "
        "end of the hour?",
        (
            (
                "about 0.1 s, since the load is only 11% too high",
                "The excess adds up: 2 requests more each second.",
            ),
            ("about as long as in any other minute", "Above capacity there is no steady state to return to."),
            (
                "about 400 s",
                "2 x 3,600 = 7,200 requests are in front, and 18 leave per second. Autoscaling that reacts to "
                "the mean of the last minute comes late.",
            ),
            ("one hour", "The queue grows by the excess, not by all arrivals."),
        ),
        "c",
    ),
    Question(
        "burstiness",
        "You want vllm bench serve to send bursts like those of this lab, with a coefficient of variation of 4."
        " Its flag --burstiness is the shape of a Gamma distribution, whose coefficient of variation is 1 / "
        "sqrt(shape). Which value?",
        (
            ("4", "A shape of 4 is smoother than Poisson: a coefficient of variation of 0.5."),
            ("0.25", "That is a coefficient of variation of 2."),
            ("0.0625", "1 / 4^2: lower is burstier, and 1 is Poisson."),
            ("16", "That is nearly a clock: a coefficient of variation of 0.25."),
        ),
        "c",
    ),
)
