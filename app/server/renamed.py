"""Options that have another name than they had: links and files of before still mean them."""

RENAMED = {  # setting → old option → the option now
    "aligned_at": {
        "as measured": "automatic",
        "is predicted": "word about to be written",
        "is read": "word just read",
    },
    "aligned_by": {"Mean of its layer": "Mean of the layer"},
    "at": {"Residual, norm": "Add & norm"},
    "follow": {"second token": "clearest row", "the second token": "clearest row"},
    "lab": {"Other positions": "Other encodings", "What is added": "Table and sum"},
    "picture": {"Layers alike": "Similarity", "Turn": "Direction"},
    "shows": {
        "Difference to it": "Difference from it",
        "Other run": "Comparison",
        "This run": "Current",
        "With the changes": "After",
        "Without": "Before",
    },
    "swap": {"decoder alone": "decoder only"},
    "sweep": {
        "Heads, by token": "Heads patched, per token",
        "Residual stream, by token": "Residual stream patched, per token",
    },
    "vectors": {"The selected head": "Query–key plane"},
}


def now(key: str, value):
    """The value of a setting as it is called now; one that was never renamed as it is."""
    return RENAMED.get(key, {}).get(value, value) if isinstance(value, str) else value
