"""Lab 16, measuring honestly: the quiz at its end."""

from course.exercises.spec import Question

QUIZ = (
    Question(
        "closed",
        "A test keeps 64 requests in flight, always. You make the engine twice as slow. What does the test do?",
        (
            ("its queue grows without end", "It cannot: nobody is sent before somebody is answered."),
            ("it reports that requests were dropped", "None was sent, so none was dropped."),
            ("nothing changes but the latency", "With L fixed, W and the rate move together."),
            (
                "it sends half as many requests a second",
                "L is fixed at 64, so the rate is 64 / W. A closed loop slows down with the server: it measures what "
                "the engine can do, and no queue of real users.",
            ),
        ),
        "d",
    ),
    Question(
        "average",
        "Ten replicas report their p99 of TTFT every minute. How do you get the p99 of the service over a day?",
        (
            (
                "from the sum of their histograms",
                "Added bucket by bucket: counts can be added, percentiles cannot. It is good to one bucket width.",
            ),
            ("as the mean of the 14,400 values", "A mean of percentiles is no percentile of anything."),
            ("as the largest of them", "That is an upper bound, mostly far above."),
            ("as their mean, weighted by requests", "Better weights do not help: the tail of one is not that of all."),
        ),
        "a",
    ),
    Question(
        "stall",
        "Which number tells an operator that chats freeze for half a second now and then?",
        (
            (
                "the p99 of ITL, over the gaps of all requests",
                "One gap in a hundred tokens of a few requests is far above the p99.",
            ),
            ("the mean TPOT of the requests", "Half a second over 300 tokens is 1.7 ms."),
            (
                "the share of requests with a gap above 200 ms",
                "It counts people who felt it, once each.",
            ),
            ("the p99 of TTFT", "Those who felt it had their first token already."),
        ),
        "c",
    ),
    Question(
        "short",
        "A throughput stage was meant to last 300 s. It stopped after 65 s, since it was capped at 1,300 requests. "
        "What cap would have filled it?",
        (
            ("1,300", "That was the cap."),
            (
                "about 6,000",
                "1,300 / 65 s = 20 requests/s, times 300 s. Check the duration of a stage before its rates.",
            ),
            ("about 390,000", "That is 1,300 a second for 300 s; the stage answered 20 a second."),
            ("none: a cap has no effect on a rate", "A short stage is mostly its own start and end."),
        ),
        "b",
    ),
    Question(
        "burstiness",
        "aiperf's --arrival-smoothness and vLLM's --burstiness are both the shape of a Gamma distribution. Which value "
        "sends the burstiest requests?",
        (
            ("4", "That is smoother than Poisson: a coefficient of variation of 0.5."),
            ("1", "That is Poisson."),
            ("0.25", "The coefficient of variation is 1 / sqrt(shape) = 2: lower is burstier."),
            ("0, for no smoothing at all", "A shape has to be above 0."),
        ),
        "c",
    ),
)
