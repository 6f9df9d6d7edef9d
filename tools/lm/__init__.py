"""How the model was made: text, vocabulary, data, training. Training needs PyTorch and `tokenizers`."""
