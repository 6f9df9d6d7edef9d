"""How the model was made: vocabulary, data, training. Needs PyTorch and `tokenizers`; no part of the wheel."""
