"""Keys that may change what a token keeps and that this reader does not know: a reason to refuse, never to guess.

Most of a config.json has nothing to do with caches. A key is suspicious if its name speaks of attention, caches,
windows, states and the like, and it is neither among those read here nor among those known to be harmless; one that is
off (null, false, 0, empty) says nothing.
"""

import re
from functools import lru_cache
from importlib.resources import files

from course.base.settings import quote
from course.models import experts, recurrent
from course.models import keys as names
from course.models.keys import Keys

NOT_COVERED = {
    "compress_ratios": "compressed caches: what each layer keeps of a token, and at which type, is needed",
    "compress_rates": "compressed caches: what each layer keeps of a token, and at which type, is needed",
    "cross_attention_layers": "layers that attend to an image: how many of its tokens a sequence keeps is needed",
    "type_vocab_size": "segment embeddings, as encoders have them: an encoder keeps no KV cache",
    "mb_per_layer": "decoders that share one cache between them: which layer keeps what is needed",
}
SUSPICIOUS = re.compile(
    r"attn|attention|(^|_)kv|cache|window|swa(_|$)|latent|state|compress|mamba|ssm|_lora_rank|mla(_|$)|conv(_|\d|$)|recur|"
    r"layer_types|block_types|_heads$|head_dim|num_head|index|chunk|(^|_)cla(_|$)|cca|lightning|hybrid|retention|rnn|lru|"
    r"local|global|pool|kda|gdn|delta|loop|per_layer|memory|pattern|shared?_kv|(^|_)mtp|nextn"
)
READ_KEYS = frozenset(
    (
        *names.LAYERS,
        *names.HEADS,
        *names.KV_HEADS,
        *names.HEAD_DIM,
        *names.WINDOW,
        *names.DRAFTS,
        *recurrent.MAMBA_HEADS,
        *recurrent.MAMBA_HEAD_DIM,
        *recurrent.MAMBA_GROUPS,
        *recurrent.STATE_SIZE,
        *recurrent.CONV_WIDTH,
        *recurrent.EXPAND,
        *recurrent.STATE_TYPE,
        *recurrent.MARKS,
    )
)
OF_WEIGHTS = frozenset(
    (
        *names.WIDTH,
        *names.CONTEXT,
        *names.VOCABULARY,
        *experts.NUMBER,
        *experts.WIDTH,
        *experts.PER_TOKEN,
        *experts.SHARED_EXPERTS,
        *experts.SHARED_WIDTH,
        "first_k_dense_replace",
        "num_dense_layers",
        "decoder_sparse_step",
        "intermediate_size",
        "model_type",
        "quantization_config",
    )
)
"""Keys that say nothing of caches, and without which weights or defaults are others."""
HARMLESS_VALUES = {"full_attn_mod": 1}
"""Keys with one value that changes nothing: every layer of Phi-4-multimodal has full attention."""
HARMLESS_BESIDE = dict.fromkeys(("index_skip_topk_offset", "index_topk_freq", "index_topk_pattern"), "indexer_types")
"""Keys that say nothing more if another one is there: GLM-5.2 lists which layers have an indexer of their own."""
HARMLESS_ENDINGS = re.compile(r"(dropout|pdrop|_prob|bias|multipliers?|softcap(ping)?|norm|_eps|init|scale|impl|act)$")
NEVER = re.compile(r"^(vision|audio|router|moe|expert|norm|image|video)_|^quantization|(^|_)(rope|rotary)(_|$)|theta")


def check(keys: Keys) -> None:
    """ValueError for the first key that may matter and is not understood."""
    if keys.flag("is_encoder_decoder"):
        raise keys.refusal("is_encoder_decoder: what the decoder keeps of the encoder's output is not known")
    for name in NOT_COVERED:  # what is known to be missing says more than what is not known
        _check_covered(keys, name, keys.values.get(name))
    for name, value in keys.values.items():
        if name in HARMLESS_BESIDE and HARMLESS_BESIDE[name] in keys:
            continue
        if name in HARMLESS_VALUES and not isinstance(value, bool) and value == HARMLESS_VALUES[name]:
            continue
        if not isinstance(name, str):
            raise keys.refusal(f"the key {quote(name)} is no text")
        if _off(value):
            continue
        if name in NOT_COVERED or name in READ_KEYS or name in _names_in_file():
            continue
        if HARMLESS_ENDINGS.search(name) or NEVER.search(name):
            continue
        if SUSPICIOUS.search(name):
            label = name if name.isidentifier() else quote(name)
            raise keys.refusal(
                f"{label} = {quote(value)} is not understood, and may change what a token keeps: what a layer stores "
                "under this key is needed"
            )


def renamed(keys: Keys) -> tuple[str, ...]:
    """A sentence for each unknown key whose name is a known one and a word more, where the known one is not there."""
    known = _names_in_file() | READ_KEYS | OF_WEIGHTS
    sentences = []
    for name, value in keys.values.items():
        if not isinstance(name, str) or name in known or _off(value):
            continue
        beginnings = (name.rsplit("_", words)[0] for words in range(1, name.count("_") + 1))
        near = next((one for one in beginnings if one in known and one not in keys), None)
        if near is not None:
            sentences.append(f"{name} is not read, and {near} is not there: was it renamed?")
    return tuple(sentences)


def _off(value: object) -> bool:
    return value is None or value is False or value in (0, "", "none") or value == [] or value == {}


def _check_covered(keys: Keys, name: str, value: object) -> None:
    """ValueError if this key is on: what it means for a cache is known to be missing."""
    decoder = name == "type_vocab_size" and keys.values.get("is_decoder") is True
    if not _off(value) and not decoder:
        raise keys.refusal(f"{name} = {quote(value)} means {NOT_COVERED[name]}")


@lru_cache
def _names_in_file() -> frozenset[str]:
    """The names in data/config_keys.txt, whatever their section."""
    text = (files("course") / "data" / "config_keys.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and line[0] not in "#[")
