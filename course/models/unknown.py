"""Keys that may change what a token keeps and that nobody here understands: a reason to refuse, never to guess.

Most of a config.json has nothing to do with caches. A key is suspicious where its name speaks of attention, caches,
windows, states and the like, and it is neither among those read here nor among those known to be harmless; one that is
off (null, false, 0, empty) says nothing.
"""

import re
from functools import lru_cache
from importlib.resources import files

from course.base.settings import quote
from course.models import keys as names
from course.models import recurrent
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
HARMLESS_ENDINGS = re.compile(r"(dropout|pdrop|_prob|bias|multipliers?|softcap(ping)?|norm|_eps|init|scale|impl|act)$")
NEVER = re.compile(r"^(vision|audio|router|moe|expert|norm|image|video)_|^quantization|(^|_)(rope|rotary)(_|$)|theta")


def check(keys: Keys) -> None:
    """ValueError for the first key that may matter and is not understood."""
    if keys.flag("is_encoder_decoder"):
        raise keys.refusal("is_encoder_decoder: what the decoder keeps of the encoder's output is not known")
    for name, value in keys.values.items():
        if not isinstance(name, str):
            raise keys.refusal(f"the key {quote(name)} is no text")
        if value is None or value is False or value in (0, "", "none") or value == [] or value == {}:
            continue
        if name in NOT_COVERED and not (name == "type_vocab_size" and keys.values.get("is_decoder") is True):
            raise keys.refusal(f"{name} = {quote(value)} means {NOT_COVERED[name]}")
        if name in READ_KEYS or name in _names_in_file() or HARMLESS_ENDINGS.search(name) or NEVER.search(name):
            continue
        if SUSPICIOUS.search(name):
            label = name if name.isidentifier() else quote(name)
            raise keys.refusal(
                f"{label} = {quote(value)} is not understood, and may change what a token keeps: what a layer stores "
                "under this key is needed"
            )


@lru_cache
def _names_in_file() -> frozenset[str]:
    """The names in data/config_keys.txt, whatever their section."""
    text = (files("course") / "data" / "config_keys.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and line[0] not in "#[")
