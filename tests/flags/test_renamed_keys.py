"""A key of a YAML under another name: the same settings, or a refusal; never the defaults in place of what it says."""

import pytest
import yaml

from course import flags

MANIFESTS = {
    "compose": """
services:
  engine:
    image: vllm/vllm-openai:v0.19
    environment: {SLOTS: "48"}
    command: --model my/model --max-num-seqs $SLOTS --max-model-len 4096
  proxy: {image: nginx, command: [nginx, -g, "daemon off;"]}
""",
    "deployment": """
kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: engine
        image: vllm/vllm-openai:v0.19
        env: [{name: SLOTS, value: "48"}]
        args: ["--model", "my/model", "--max-num-seqs", "$(SLOTS)", "--max-model-len", "4096"]
""",
    "kserve": """
kind: InferenceService
spec:
  predictor:
    model:
      modelFormat: {name: huggingface}
      storageUri: hf://my/model
      args: ["--model_name=x", "--max_num_seqs=48"]
""",
    "helm": """
servingEngineSpec:
  modelSpec:
  - name: a
    modelURL: my/model
    vllmConfig: {maxModelLen: 4096, maxNumSeqs: 48, extraArgs: ["--max-num-batched-tokens", "4096"]}
""",
    "config": "model: my/model\nmax-num-seqs: 48\nmax-model-len: 4096\nkv-cache-dtype: fp8\n",
}


def places(value, above=()):
    """The way to each key."""
    if isinstance(value, dict):
        for key, inside in value.items():
            yield (*above, key)
            yield from places(inside, (*above, key))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from places(one, (*above, place))


def renamed(value, way):
    if isinstance(value, list):
        return [renamed(one, way[1:]) if place == way[0] else one for place, one in enumerate(value)]
    last = len(way) == 1
    return {
        (f"{key}New" if last and key == way[0] else key): one if last or key != way[0] else renamed(one, way[1:])
        for key, one in value.items()
    }


def settings(text):
    found = flags.parse(text)
    return vars(found.policy), found.kv


@pytest.mark.parametrize("name", MANIFESTS)
def test_no_key_is_lost_without_a_word(name):
    document = yaml.safe_load(MANIFESTS[name])
    before, refused = settings(yaml.safe_dump(document)), 0
    for way in places(document):
        try:
            assert settings(yaml.safe_dump(renamed(document, way))) == before, way
        except ValueError:
            refused += 1
    assert refused >= 2


def test_arguments_that_are_added_to_another_command_are_none_of_their_own():
    with pytest.raises(ValueError, match="names no container"):
        flags.parse('modelSpec:\n- name: a\n  other:\n    extraArgs: ["--max-num-seqs", "4"]\n')
