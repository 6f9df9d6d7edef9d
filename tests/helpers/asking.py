"""`serve` in the two ways that must give the same run: `until` honoured, and the policy asked before every step."""

from functools import partial

from course import serve

serve_asking = partial(serve, honour_until=False)
BOTH = (serve, serve_asking)
