"""Shapes of models and what they keep of a token; GPUs and an engine's defaults."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, TERM, UNIT, Mutant

TESTS = (
    "tests/models/test_parts.py",
    "tests/models/test_models.py",
    "tests/models/test_families.py",
    "tests/models/test_gpus.py",
    "tests/models/test_data_sheets.py",
    "tests/models/test_oracles.py",
    "tests/models/test_properties.py",
    "tests/models/test_refusals.py",
    "tests/memory/test_ledger.py",
)
SPEC, LAYERS, WEIGHTS, PARAMETERS = (f"course/models/{name}.py" for name in ("spec", "layers", "weights", "parameters"))
ATTENTION, PATTERN, RECURRENT = (f"course/models/{name}.py" for name in ("attention", "pattern", "recurrent"))
GPUS, DEFAULTS, CONFIG = (f"course/models/{name}.py" for name in ("gpus", "engine_defaults", "config"))

MUTANTS = (
    Mutant(PARAMETERS, "return self.layers + self.embedding + self.head", "return self.layers + self.embedding", TERM),
    Mutant(SPEC, "layer.attention.elements() * layer.attention.window", "layer.attention.elements()", TERM),
    Mutant(SPEC, "2 * (self.num_heads + self.num_kv_heads)", "2 * self.num_heads", TERM),
    Mutant(
        SPEC,
        "attention + 3 * self.hidden_size * self.intermediate_size",
        "attention + 2 * self.hidden_size * self.intermediate_size",
        CONSTANT,
    ),
    Mutant(
        SPEC,
        "self._counts().layer_bytes + self.head_parameters",
        "self._counts().layer_bytes + 2 * self.head_parameters",
        CONSTANT,
    ),
    Mutant(
        SPEC,
        "return self.layer_parameters + 2 * self.head_parameters",
        "return self.layer_parameters + self.head_parameters",
        CONSTANT,
    ),
    Mutant(SPEC, "dtype = self.kv_cache_dtype or dtype", "dtype = dtype", TERM),
    Mutant(
        LAYERS,
        'return on_rank("KV heads", self.kv_heads, tp) * (self.key_dim + self.value_dim)',
        'return on_rank("KV heads", self.kv_heads, tp) * 2 * self.key_dim',
        TERM,
    ),
    Mutant(
        LAYERS,
        "self.rank + 4 * -(-self.rank // 128) + 2 * self.rope_dim",
        "self.rank + 4 * (self.rank // 128) + self.rope_dim",
        TERM,
    ),
    Mutant(LAYERS, "        return self.rank + self.rope_dim\n", "        return self.rank\n", TERM),
    Mutant(LAYERS, "self.index_dim + 4 * -(-self.index_dim // 128)", "self.index_dim", TERM),
    Mutant(LAYERS, "number < tp and tp % number == 0", "number < tp", TERM),
    Mutant(
        LAYERS,
        "on_rank(self.what, self.units, tp, self.copied) * (",
        "self.units * (",
        TERM,
    ),
    Mutant(WEIGHTS, '4) * keys.needed("the width of the model"', '3) * keys.needed("the width of the model"', CONSTANT),
    Mutant(WEIGHTS, 'return width // 2 if width and keys.family == "qwen" else width', "return width", TERM),
    Mutant(WEIGHTS, "head = 0 if _ties_head(outer, keys) else embedding", "head = embedding", TERM),
    Mutant(WEIGHTS, "active=dense + parts.active_experts", "active=dense + parts.experts", TERM),
    Mutant(WEIGHTS, "layers_stored = max(stored - other_bytes, 0)", "layers_stored = stored", TERM),
    Mutant(WEIGHTS, "mixture.shared_width + hidden * mixture.number +", "mixture.shared_width +", TERM),
    Mutant(
        WEIGHTS, "mixture.number * one, mixture.per_token * one", "mixture.per_token * one, mixture.number * one", ORDER
    ),
    Mutant(WEIGHTS, "nope = shape.key_dim - shape.rope_dim", "nope = shape.key_dim", TERM),
    Mutant(WEIGHTS, "else 3\n    if mixture is None", "else 2\n    if mixture is None", CONSTANT),
    Mutant(WEIGHTS, "attention = 16 if quantised.attention_kept else mixers", "attention = mixers", TERM),
    Mutant(ATTENTION, 'index = index if types[1][i] == "full" else 0', "index = index", TERM),
    Mutant(ATTENTION, "return heads // self._grouped(i, blocks[1])", "return heads", TERM),
    Mutant(ATTENTION, "return width // heads\n", "return width // heads + 1\n", BOUNDARY),
    Mutant(ATTENTION, "return number or heads", "return number or 1", CONSTANT),
    Mutant(PATTERN, "[FULL if i % period == offset else LINEAR", "[LINEAR if i % period == offset else FULL", ORDER),
    Mutant(
        PATTERN, "return [LINEAR if (i + 1) % interval else FULL", "return [LINEAR if i % interval else FULL", BOUNDARY
    ),
    Mutant(PATTERN, "return [SLIDING if (i + 1) % every else FULL", "return [SLIDING if i % every else FULL", BOUNDARY),
    Mutant(PATTERN, "return [FULL if i < first else SLIDING", "return [FULL if i <= first else SLIDING", BOUNDARY),
    Mutant(PATTERN, "width >= context", "width > context", COMPARISON),
    Mutant(RECURRENT, "*names, low=2) - 1) * HALF", "*names, low=2)) * HALF", BOUNDARY),
    Mutant(RECURRENT, "2 * state * conv, copied=True", "state * conv, copied=True", CONSTANT),
    Mutant(RECURRENT, "elements * _state_bytes(keys)", "elements * HALF", UNIT),
    Mutant(RECURRENT, "3 * each * conv", "2 * each * conv", CONSTANT),
    Mutant(GPUS, 'round(float(row["runtime_mib"]) * MIB)', 'round(float(row["runtime_mib"]) * 10**6)', UNIT),
    Mutant(GPUS, 'float(row["bandwidth_gbs"]) * 1e9', 'float(row["bandwidth_gbs"]) * 2**30', UNIT),
    Mutant(GPUS, "matrix_flops=flops * _MATRIX_SHARE", "matrix_flops=flops * _BANDWIDTH_SHARE", TERM),
    Mutant(GPUS, "read_bandwidth=3.02e12", "read_bandwidth=3.20e12", CONSTANT),
    Mutant("course/data/gpus.csv", "A10G-24GB,23028,22587,600,70", "A10G-24GB,23028,22587,600,125", CONSTANT),
    Mutant(
        DEFAULTS,
        "gpu.memory_bytes >= LARGE_MEMORY and",
        "gpu.memory_bytes > 2 * LARGE_MEMORY and",
        COMPARISON,
        ("tests/flags",),
    ),
    Mutant(
        DEFAULTS,
        "(1024, 8192), (256, 2048)",
        "(1024, 8192), (256, 8192)",
        CONSTANT,
        ("tests/flags",),
    ),
    Mutant(CONFIG, "i < number - shared and", "i <= number - shared and", BOUNDARY),
    Mutant(CONFIG, "for kind in kinds for _ in (0, 1)]", "for kind in kinds for _ in (0,)]", CONSTANT),
)
