"""A page in one file that computes in the browser: the Transformer, its masks, changes, decoding
and tokenizer once more in JavaScript. build.py puts it together with a checkpoint."""
