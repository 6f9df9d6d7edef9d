"""The `course` command and bad input: one sentence on stderr, nothing on stdout, status 2."""

import pytest
from typer.testing import CliRunner

from course.cli import app

HUGE = "1" + "0" * 30
BAD = {
    "simulate": "there are no requests: give a trace with --trace FILE, or a rate with --rate 10",
    "simulate --rate nan": "--rate must be a finite number from 1e-09 to 1e+09, not nan",
    "simulate --rate inf": "--rate must be a finite number",
    "simulate --rate 0": "--rate must be a finite number",
    "simulate --rate -1": "--rate must be a finite number",
    "simulate --rate 1e30": "--rate must be a finite number",
    "simulate --rate ten": "Invalid value for '--rate'",
    "simulate --rate": "--rate",
    "simulate --rate 5 --num-requests 0": "--num-requests must be a whole number from 1 to 5,000,000, not 0",
    "simulate --rate 5 --num-requests 1000000000000": "--num-requests must be a whole number",
    f"simulate --rate 5 --num-requests {HUGE}": "--num-requests",
    "simulate --rate 5 --num-requests 1.5": "Invalid value for '--num-requests'",
    "simulate --rate 5 --prompt-tokens 0": "--prompt-tokens must be a finite number from 1",
    "simulate --rate 5 --output-tokens nan": "--output-tokens must be a finite number from 1",
    "simulate --rate 5 --prompt-cv -1": "--prompt-cv must be a finite number from 0 to 100",
    "simulate --rate 5 --output-cv inf": "--output-cv must be",
    "simulate --rate 5 --arrival-cv 1e30": "--arrival-cv must be",
    "simulate --rate 5 --seed -1": "--seed must be",
    "simulate --rate 5 --head 0": "--head must be",
    "simulate --rate 5 --scale-rate 0": "--scale-rate must be",
    "simulate --rate 5 --num-requests 1 --scale-rate 2": "no rate to scale",
    "simulate --rate 5 --policy fifo": "no policy is called 'fifo'; there are continuous, bucket",
    "simulate --rate 5 --policy static,": "no policy is called ''",
    "simulate --rate 5 --max-num-seqs 0": "--max-num-seqs must be",
    "simulate --rate 5 --max-num-seqs 4096": "--max-num-batched-tokens 2048 is smaller than one decode",
    "simulate --rate 5 --policy dynamic --max-queue-delay-ms -1": "--max-queue-delay-ms must be",
    "simulate --rate 5 --max-num-batched-tokens nan": "--max-num-batched-tokens",
    "simulate --rate 5 --long-prefill-token-threshold -1": "--long-prefill-token-threshold must be",
    "simulate --rate 5 --no-enable-chunked-prefill": "--no-enable-chunked-prefill",
    "simulate --rate 5 --num-gpu-blocks 0": "--num-gpu-blocks-override must be",
    "simulate --rate 5 --gpu T4": "the weights, 14.96 GiB a card, do not fit into the usable 13.27 GiB",
    "simulate --rate 5 --gpu T4 --unlimited-kv --num-gpu-blocks 9": "--unlimited-kv and --num-gpu-blocks-override",
    "simulate --rate 5 --model deepseek-v3 --gpu H100 --tp 8": "do not fit into the usable",
    "simulate --rate 5 --tp 3": "cannot be spread over 3 ranks",
    "simulate --rate 5 --kv-cache-dtype fp3": "no KV cache type is called 'fp3'",
    "simulate --rate 5 --gpu-memory-utilization 2": "--gpu-memory-utilization must be",
    "simulate --rate 5 --num-gpu-blocks 3": "can never be served",
    "simulate --rate 5 --num-gpu-blocks 3000 --block-size 0": "--block-size must be",
    "simulate --rate 5 --step-time magic": "--step-time is roofline or power-law:t0=",
    "simulate --rate 5 --step-time roofline:x": "--step-time is roofline or power-law:t0=",
    "simulate --rate 5 --step-time power-law": "--step-time power-law needs t0 and c",
    "simulate --rate 5 --step-time power-law:t0=1": "--step-time power-law needs c",
    "simulate --rate 5 --step-time power-law:t0=1,c=1,t0=2": "--step-time gives t0 twice",
    "simulate --rate 5 --step-time power-law:t0=1,c=x": "c must be a number of seconds, not 'x'",
    "simulate --rate 5 --step-time power-law:t0=nan,c=1": "t0 must be",
    "simulate --rate 5 --step-time power-law:t0=0,c=0": "a step must take time",
    "simulate --rate 5 --step-time power-law:beta=1": "takes t0, c, alpha, prefill, context, pairs",
    "simulate --rate 5 --model gpt-9": "no model is called 'gpt-9'",
    "simulate --rate 5 --gpu B9000": "no GPU is called 'B9000'",
    "simulate --rate 5 --ttft-slo-ms 0": "--ttft-slo-ms must be a finite number above 0",
    "simulate --rate 5 --tpot-slo-ms nan": "--tpot-slo-ms must be",
    "simulate --rate 5 --warmup 1e9": "no request arrives after a warm-up",
    "simulate --rate 5 --warmup -1": "--warmup must be",
    # Options that this run would not look at
    "simulate --rate 5 --max-queue-delay-ms nan": "--max-queue-delay-ms must be a finite number from 0 to 1e+13",
    "simulate --rate 5 --max-queue-delay-ms 1e30": "--max-queue-delay-ms must be",
    "simulate --rate 5 --policy static --max-num-batched-tokens 0": "--max-num-batched-tokens must be",
    "simulate --rate 5 --policy dynamic --long-prefill-token-threshold -1": "--long-prefill-token-threshold must be",
    "simulate --rate 5 --block-size 0": "--block-size must be",
    "simulate --rate 5 --step-time power-law:t0=1,c=1 --model gpt-9": "no model is called 'gpt-9'",
    "simulate --rate 5 --step-time power-law:t0=1,c=1 --gpu B9000": "no GPU is called 'B9000'",
    "simulate --rate 5 --on-error bogus": "--on-error is raise or skip, not 'bogus'",
    "simulate --trace no/such.csv": "cannot read no/such.csv: No such file or directory",
    "simulate --trace .": ". is a folder",
    "simulate --trace x.csv --rate 5 --seed 1": "--trace has its own requests: leave out --rate, --seed",
    "simulate --bogus": "No such option: --bogus",
    "simulate extra": "unexpected extra argument",
    "serv": "No such command 'serv'. Did you mean 'serve'?",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_sentence_on_stderr(line):
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == 2
    assert result.stdout == ""
    assert BAD[line] in result.stderr
    assert len(result.stderr.splitlines()) == 1 and "Traceback" not in result.stderr
    assert result.stderr.startswith("course: ")
