"""What `transformers` makes of the exported checkpoint: tokens of every prompt, words of both models.

Run by vLLM's Python. read_by_transformers.py MODEL PROMPTS OUT: PROMPTS is a list of {"turns": [...], "answer": "..."}.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(folder, prompts, out):
    """Writes the versions, the tokens of all chats, those of all answers, and what greedy decoding says."""
    asked = json.loads(Path(prompts).read_text(encoding="utf-8"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    found: dict[str, Any] = {
        "transformers": version("transformers"),
        "tokenizers": version("tokenizers"),
        "torch": version("torch"),
    }
    found["prompts"], found["answers"] = [], []
    for one in asked:
        chat = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(one["turns"])]
        ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=True, return_dict=False)
        found["prompts"].append(ids)
        found["answers"].append([*tokenizer.encode(one["answer"]), tokenizer.eos_token_id])
    found["back"] = sum(
        tokenizer.decode(ids, skip_special_tokens=True) == one["answer"]
        for ids, one in zip(found["answers"], asked, strict=True)
    )
    for name, place in (("model", Path(folder)), ("draft", Path(folder) / "draft")):
        model = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32)
        found[name] = []
        for ids in found["prompts"]:
            given = torch.tensor([ids])
            said = model.generate(given, attention_mask=torch.ones_like(given), max_length=512, do_sample=False)
            found[name].append(said[0, len(ids) :].tolist())
    Path(out).write_text(json.dumps(found), encoding="utf-8")


main(*sys.argv[1:])
