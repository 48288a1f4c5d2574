"""Files that students hand in for the exercise `scores`, and what each earns and is told."""

# ruff: noqa: E501  # programs of one line

RIGHT = "def scores(q, k):\n    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5\n"
BOTH = RIGHT + "def softmax(scores, mask=None):\n    return scores\n"
ENDED = "Your code ended Python before it was judged. Does it call exit?"

# name → (file, points, what is said)
GRADED = {
    "a syntax error": (f"{RIGHT}\ndef softmax(:\n", 0, "scores.py:4: def softmax(:"),
    "one function alone": (RIGHT, 2, "There is no softmax in scores.py."),
    "nothing": ("", 0, "There is no scores in scores.py."),
    "an exception": (f"{BOTH}\n1 / 0\n", 0, "scores.py:6: 1 / 0"),
    "it exits": (f"{BOTH}\nraise SystemExit(0)\n", 0, ENDED),
    "it exits at once": (f"import os\nos._exit(0)\n{BOTH}", 0, ENDED),
    "it exits at once in a call": (
        f"import os\n{RIGHT}def softmax(scores, mask=None):\n    os._exit(0)\n", 2, ENDED),
    "it is killed": (f"import os\nos.kill(os.getpid(), 9)\n{BOTH}", 0, ENDED),
    "it answers for us": (
        "import os\nfor i in range(3, 60):\n    try:\n        os.write(i, b'\\0\\0\\0\\5right')\n"
        f"    except OSError:\n        pass\nos._exit(0)\n{BOTH}", 0, "right"),
    "it changes check": (
        "from headlight import check\nfor name in ('scores', 'softmax', 'in_model', 'verdict'):\n"
        f"    setattr(check, name, lambda *a, **k: True)\n{BOTH}", 0, "Your code replaces headlight"),
    "it changes the verdict": (
        "from headlight.model.checking.verdict import Verdict\n"
        f"Verdict.__bool__ = lambda self: True\n{BOTH}", 0, "Verdict.__bool__, by which it is judged"),
    "it changes the judge in a call": (
        "from headlight.model.checking import judge\ndef scores(q, k):\n"
        "    judge.judged = None\n    return q\ndef softmax(s, mask=None):\n    return s\n",
        0, "judge.judged, by which it is judged"),
}  # fmt: skip
