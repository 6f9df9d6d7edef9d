"""Speculative decoding as a policy: another policy decides who runs, and those that decode get drafts besides."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from course.base import settings
from course.policies.base import Policy, Request, Schedule, State, fresh


class Drafting(Policy):
    """The policy that it is given, and `num_speculative_tokens` drafts for each request that decodes.

    policy: decides who runs; no padded one. Its token budget is what the drafts leave of its own, as in vLLM, where who
    runs is scheduled with its drafts before prompts are. A step drafts less if the budget is too small for so many of
    all that decode, and nothing if blocks are short for the longest draft of everybody. (vLLM gives drafts blocks as it
    gives them to tokens, and may preempt for them.)

    A subclass may define `drafts`, to draft less in a large batch. Raises ValueError for a policy that pads, for
    more drafts than a step has room for, and while serving for a draft that all blocks together do not hold.
    """

    def __init__(self, policy: Policy, num_speculative_tokens: int):
        self.policy, self.num_speculative_tokens = policy, num_speculative_tokens
        self.max_num_seqs, self.max_num_batched_tokens = policy.max_num_seqs, _budget(policy)
        self.check_settings()

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be, or contradict each other."""
        if getattr(self.policy, "padded", False):
            raise ValueError(f"{type(self.policy).__name__} pads its batches, in which no drafts are verified")
        if isinstance(self.policy, Policy):
            self.policy.check_settings()
        tokens = settings.whole("num_speculative_tokens", self.num_speculative_tokens, low=0, high=1_000)
        if tokens >= self.max_num_batched_tokens:
            raise ValueError(
                f"a step of {self.max_num_batched_tokens} tokens has no room for one token and {tokens} drafts: lower "
                "num_speculative_tokens, or raise max_num_batched_tokens"
            )

    def fresh(self) -> Drafting:
        """One like this around a policy that has served nothing yet."""
        made: Drafting = super().fresh()  # type: ignore[assignment]
        made.policy = fresh(self.policy)
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.policy!r}, num_speculative_tokens={self.num_speculative_tokens})"

    def drafts(self, state: State) -> int:
        """Drafts for each request that decodes in the coming step: by default always as many."""
        return self.num_speculative_tokens

    def schedule(self, state: State) -> Schedule:
        """What the policy answers, with drafts. It is asked again before the next step."""
        many, budget = state.decodes, self.max_num_batched_tokens
        drafts = self.drafts(state) if many else 0
        if drafts and many * (1 + drafts) > budget:
            drafts = max(0, int((budget - many) // many))
        if (blocks := -(-drafts // state.block_size)) > state.num_blocks:
            raise ValueError(
                f"{drafts} drafts take {blocks} KV blocks, and num_blocks is {state.num_blocks}: nothing would ever "
                "be drafted; lower num_speculative_tokens, or raise num_blocks"
            )
        if budget < inf:
            self.policy.max_num_batched_tokens = budget - many * drafts
        answer = self.policy.schedule(state)
        if drafts and budget < inf:  # whoever looked at the budget of the engine planned without drafts
            taken = sum(answer.tokens.values()) + (many if answer.decodes else 0)
            drafts = max(0, min(drafts, int((budget - taken) // many)))
        runs = answer.tokens or answer.decodes
        if (
            not drafts
            or not runs
            or answer.preempt
            or not self._room(state, answer.tokens, many * -(-drafts // state.block_size))
        ):
            return answer
        return Schedule(answer.tokens, (), answer.decodes, None, drafts, answer.reject)

    def _room(self, state: State, tokens: Mapping[Request, int], blocks: int) -> bool:
        """Whether so many blocks are left besides what the answer takes."""
        if state.free_blocks == inf:
            return True
        plan = state.plan()
        for request, count in tokens.items():
            if request in state.waiting or request in state.prefilling:
                plan.take(request, count, if_fit=count)
        return blocks <= plan.free


def _budget(policy: object) -> float:
    return getattr(policy, "max_num_batched_tokens", inf)
