"""Make the model and its draft from a seed.

PYTHONPATH=. python -m tools.lm.train --out DIR

It took 377 seconds on an H100: text, then each network for a number of steps. Without --steps the number is found from
the speed of the first steps and --seconds; the committed weights are of `--conversations 2400000 --steps 9993 8890`.
Weights and figures are written to DIR after every look at the held-out prompts. PyTorch on a GPU repeats a run up to
the order of its sums, not to the bit.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from course.lm import weights
from course.lm.loading import ROOM
from course.lm.tokenizer import Tokenizer
from tools.lm import data
from tools.lm.network import Network
from tools.lm.text import KINDS, Exchange, of_kind

WARM_UP, SPEED_STEPS = 400, 60  # steps: learning rate rising; those that show the speed
PEAK = {"model": 2e-3, "draft": 3e-3}
LOOKS = 8  # at the held-out prompts during a run


def targets(rows: Tensor, tokenizer: Tokenizer) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens, documents, next tokens and whether the next token is part of an answer, all [rows, length]."""
    rows = rows.long()
    document = (rows >= data.START).cumsum(1)
    tokens = rows % data.START
    answering = (tokens == tokenizer.assistant).cumsum(1) > (tokens == tokenizer.end).cumsum(1)
    following = torch.cat((tokens[:, 1:], torch.zeros_like(tokens[:, :1])), 1)
    answering[:, -1] = False
    return tokens, document, following, answering


class HeldOut:
    """Held-out prompts with their answers, by kind, and a mix of them in the shares of the training text."""

    def __init__(self, tokenizer: Tokenizer, device: str, each: int):
        self.device = device
        sets = {"mix": data.held_out_mix(5, 10 * each)} | {kind: of_kind(kind, 5, each) for kind in KINDS}
        self.sets = {kind: self._prepared(tokenizer, found) for kind, found in sets.items()}

    def _prepared(self, tokenizer: Tokenizer, found: list[Exchange]) -> tuple[np.ndarray, np.ndarray]:
        pairs = [data.question(tokenizer, exchange) for exchange in found]
        longest = max(len(before) + len(answer) for before, answer in pairs)
        tokens, answering = np.zeros((len(pairs), longest), np.int64), np.zeros((len(pairs), longest), bool)
        for i, (before, answer) in enumerate(pairs):
            tokens[i, : len(before) + len(answer)] = before + answer
            answering[i, len(before) - 1 : len(before) + len(answer) - 1] = True
        return tokens, answering

    @torch.no_grad()
    def look(self, network: Network) -> dict[str, Any]:
        """Loss in nats a token of the mix, and the share right by kind.

        An answer is right when each of its tokens has the largest logit after the right ones before it, which is so
        exactly when greedy decoding writes it.
        """
        network, shares, loss = network.rounded(), {}, math.nan
        for kind, (tokens, answering) in self.sets.items():
            right, losses, number = 0, 0.0, 0
            for part in range(0, len(tokens), 100):
                x = torch.from_numpy(tokens[part : part + 100]).to(self.device)
                asked = torch.from_numpy(answering[part : part + 100]).to(self.device)[:, :-1]
                logits = network(x, torch.zeros_like(x))[:, :-1]
                right += int(((logits.argmax(-1) == x[:, 1:]) | ~asked).all(1).sum())
                losses += float(functional.cross_entropy(logits[asked], x[:, 1:][asked], reduction="sum"))
                number += int(asked.sum())
            if kind == "mix":
                loss = losses / number
            shares[kind] = round(right / len(tokens), 4)
        return {"held_out_loss": loss, "right": shares}


def train(name: str, config: dict[str, Any], rows: Tensor, held: HeldOut, tokenizer: Tokenizer, asked: Any) -> None:
    """One network: its weights go to OUT/name.safetensors, its figures to OUT/name.json."""
    torch.manual_seed(asked.seed)
    device, began = asked.device, time.perf_counter()
    network = Network(config).to(device)
    forward = network if asked.no_compile else torch.compile(network)
    matrices = [weight for weight in network.parameters() if weight.dim() == 2]
    others = [weight for weight in network.parameters() if weight.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK[name], betas=(0.9, 0.95), fused=device == "cuda")
    order = torch.Generator().manual_seed(asked.seed)
    per_epoch = len(rows) // asked.batch
    steps = (asked.steps or {}).get(name, 0)
    seconds = asked.seconds if name == "model" else asked.draft_seconds
    losses: list[tuple[int, float]] = []
    looks: list[dict[str, Any]] = []
    figures = {"name": name, "parameters": sum(weight.numel() for weight in network.parameters()), "seed": asked.seed}
    print(name, figures["parameters"], "parameters", flush=True)
    step, started = 0, 0.0
    shuffled = torch.empty(0)
    while not steps or step < steps:
        if step % per_epoch == 0:
            shuffled = torch.randperm(len(rows), generator=order).to(device)
        place = step % per_epoch * asked.batch
        tokens, document, following, answering = targets(rows[shuffled[place : place + asked.batch]], tokenizer)
        done = step / steps if steps else 0.0
        rate = PEAK[name] * min(1, (step + 1) / WARM_UP) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = forward(tokens, document)
            each = functional.cross_entropy(logits.flatten(0, 1), following.flatten(), reduction="none")
            loss = (each * answering.flatten()).sum() / answering.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if step == 10:  # compiled and warm
            loss.item()
            started = time.perf_counter()
            print(name, f"first steps after {started - began:.1f} s", flush=True)
        if not steps and step == 10 + SPEED_STEPS:
            loss.item()
            steps = max(step + 1, int(seconds * SPEED_STEPS / (time.perf_counter() - started)))
            print(name, f"{steps} steps in {seconds} s", flush=True)
        if step in (50, 200) or step % 250 == 0:
            losses.append((step, round(loss.item(), 5)))
            print(name, step, losses[-1][1], f"{time.perf_counter() - began:.1f} s", flush=True)
        if steps and (step == steps or step % max(1, steps // LOOKS) == 0):
            looks.append({"step": step, "seconds": round(time.perf_counter() - began, 1), **held.look(network)})
            print(name, "held out", looks[-1], flush=True)
            figures |= {"steps": steps, "tokens": step * asked.batch * data.LENGTH, "rows": len(rows)}
            figures |= {"seconds": round(time.perf_counter() - began, 1), "training_loss": losses, "held_out": looks}
            weights.write(asked.out / f"{name}.safetensors", network.stored())
            (asked.out / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")


def main() -> None:
    """Text, then both networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--conversations", type=int, default=2_400_000)
    parser.add_argument("--batch", type=int, default=128, help="rows of 512 tokens in a step")
    parser.add_argument("--seconds", type=float, default=220, help="for the model")
    parser.add_argument("--draft-seconds", type=float, default=60)
    parser.add_argument("--steps", type=int, nargs=2, metavar=("MODEL", "DRAFT"), help="instead of seconds")
    parser.add_argument("--each", type=int, default=150, help="held-out prompts of a kind")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", action="store_true")
    asked = parser.parse_args()
    asked.steps = dict(zip(("model", "draft"), asked.steps, strict=True)) if asked.steps else None
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high" if asked.device == "cuda" else "highest")
    began = time.perf_counter()
    path = ROOM / "tokenizer.json"
    packed = data.training_rows(path, seed=asked.seed, number=asked.conversations, processes=os.cpu_count() or 1)
    print(f"{len(packed)} rows, {(packed > 0).mean():.3f} full, {time.perf_counter() - began:.1f} s", flush=True)
    rows = torch.from_numpy(packed.astype(np.int16)).to(asked.device)
    tokenizer = Tokenizer(path)
    held = HeldOut(tokenizer, asked.device, asked.each)
    print(f"held-out prompts ready after {time.perf_counter() - began:.1f} s", flush=True)
    for name, folder in (("model", ROOM), ("draft", ROOM / "draft")):
        train(name, json.loads((folder / "config.json").read_text()), rows, held, tokenizer, asked)


if __name__ == "__main__":
    main()
