"""What a model can be trained to do: its examples, its sizes and recipe, and how it is scored.

Training reads `examples` alone, which holds no line of a test set; `tests` is for evaluate.py.
An example is a source text and a target: a text, for a classifier the name of a class, or, where a
model goes on with the source itself, the end of the source that it is scored on.
"""

import random
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from torch import nn

from headlight.model.sites import ProbedModel
from headlight.model.tokenizer import Tokenizer
from headlight.model.training import data
from headlight.model.training.data import DataError, Pair
from headlight.model.transformer import Config
from headlight.model.variants import Classifier

Example = tuple[str, str]
SPLITS = ("train", "val")


Number = TypeVar("Number", int, float)


def setting(default: Number, text: str) -> Number:
    """A field of Recipe, with its help for the command line."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Recipe:
    """How a task is trained. Rates are Adam's; tokens are those of the longer side."""

    epochs: int = setting(40, "passes over the training data, at most")
    max_tokens: int = setting(4500, "tokens in a batch")
    peak: float = setting(4e-3, "highest learning rate")
    warmup: int = setting(1000, "steps until the learning rate is highest")
    cooldown: int = setting(0, "last steps, in which the learning rate falls to 0")
    smoothing: float = setting(0.1, "label smoothing")
    # Section 5.4 of the paper does not name it.
    attention_dropout: float = setting(0.0, "dropout on attention weights")
    shares: Mapping[str, float] = field(
        default_factory=dict, metadata={"help": "passes over each data set in an epoch (else 1)"}
    )
    joined: float = setting(0.0, "share of pairs that are followed by another one of their set")
    casual: float = setting(
        0.0, "share of pairs without final punctuation, and of sources in lower case"
    )
    r_drop: float = setting(0.0, "weight of R-Drop, which reads each batch twice; 0 is none")
    bpe_dropout: float = setting(0.0, "share of merges left out when training text is split")
    weight_decay: float = setting(0.0, "Adam's weight decay")
    average: int = setting(5, "epochs whose mean may become the checkpoint")
    patience: int = setting(10, "epochs without a better checkpoint before training stops")


def as_built(model: ProbedModel) -> None:
    """First weights as the preset has them."""


def smaller_tables(model: ProbedModel) -> None:
    """First embeddings and positions of standard deviation 1/√d_model, where PyTorch's is 1."""
    assert isinstance(model, Classifier)
    embedding = model.src_embedding
    for table in (embedding.token, embedding.position):
        assert isinstance(table, nn.Embedding)
        nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)


@dataclass(frozen=True)
class Task:
    """One task. `score` names what evaluate.py measures: "bleu", "accuracy" or "exact"; `text` is
    what sources are, in words; `first_weights` changes those of a new model; `continues` says that
    the model reads one text, the source, and learns every next token of it, with `ends` also where
    it ends; `also` names a file
    whose pairs it is trained on besides. Where a split is several sets, `sets` has each by its
    name, for a recipe to mix."""

    name: str
    title: str
    look_for: str
    text: str
    score: str
    data: str
    terms: str
    examples: Callable[[], dict[str, list[Example]]]
    tests: Callable[[], dict[str, list[Example]]]
    preset: str = "pre_norm"
    sizes: dict = field(default_factory=dict)
    vocab_size: int = 6000
    recipe: Recipe = Recipe()
    classes: tuple[str, ...] = ()
    continues: bool = False
    ends: bool = False
    direction: tuple[str, ...] = ()
    first_weights: Callable[[ProbedModel], None] = as_built
    also: str = ""
    sets: Callable[[str], dict[str, list[Example]]] | None = None

    def sets_of(self, split: str) -> dict[str, list[Example]]:
        """A split by set: one set, named as the split, where the task has no others."""
        return self.sets(split) if self.sets else {split: self.examples()[split]}

    def tokenizer(self, examples: list[Example]) -> Tokenizer:
        """Trained on the texts of these examples, the training split."""
        texts = [text for example in examples for text in self._texts(example)]
        return Tokenizer.train(texts, self.vocab_size)

    def encode(self, tokenizer: Tokenizer, examples: Iterable[Example], config: Config):
        """Examples as ids: source + eos; bos + target + eos, or bos + the number of the class. Of a
        task that continues: bos + source without its last token; bos + source. Raises DataError for
        a model that lacks a token of a target, and for an example that is too long.
        """
        if not self.classes and min(config.bos_id, config.eos_id) < 0:
            raise DataError(
                "A target needs a start token and an end token; this model has bos_id "
                f"{config.bos_id} and eos_id {config.eos_id}."
            )
        ends, source_ends = (
            [eos] * (eos >= 0) for eos in (config.eos_id, config.special_ids("src")[2])
        )
        examples = list(examples)
        sources = tokenizer.encode_batch([source for source, _ in examples])
        if self.continues:
            sources = [[config.bos_id, *ids, *ends * self.ends] for ids in sources]
            pairs: list[Pair] = [(ids[:-1], ids) for ids in sources]
        else:
            if self.classes:
                targets = [[self.classes.index(target)] for _, target in examples]
            else:
                targets = tokenizer.target.encode_batch([target for _, target in examples])
                targets = [[*ids, *ends] for ids in targets]
            pairs = [
                ([*source, *source_ends], [config.bos_id, *target])
                for source, target in zip(sources, targets, strict=True)
            ]
        for number, pair in enumerate(pairs, start=1):
            if max(map(len, pair)) > config.max_length:
                raise DataError(
                    f"Example {number:,} is {max(map(len, pair)):,} tokens long; the model reads "
                    f"at most {config.max_length:,}: {examples[number - 1][0][:40]!r} …"
                )
        return pairs

    def _texts(self, example: Example) -> Example | tuple[str]:
        return example[:1] if self.classes else example


SMALL = dict(
    d_model=128, n_heads=4, d_ff=256, n_encoder_layers=4, n_decoder_layers=4, dropout=0.3
)  # fmt: skip


LANGUAGES = {"en": "English", "de": "German", "fr": "French"}
TRANSLATOR = SMALL | dict(d_ff=512, dropout=0.1)
TRY = {  # target language → which sentences show most, behind "try"
    "de": "the perfect tense, whose verb goes to the end, a question or a subordinate clause",
    "en": "a question or a subordinate clause",
    "fr": "a colour, which follows its noun, a negation, which becomes two words, or a question",
}


def multi30k(folder: Path | None = None, reverse: bool = False) -> Task:
    """English captions into German, or the other way round."""
    src, tgt = ("de", "en") if reverse else ("en", "de")

    def read(*splits):
        where = data.find("multi30k", folder)
        return {split: data.read_multi30k(where, split, src, tgt) for split in splits}

    return Task(
        name="multi30k",
        title=f"{LANGUAGES[src]} → {LANGUAGES[tgt]}, image captions",
        look_for="Cross-attention follows the words. It leaves the diagonal where the word "
        "order differs: try verbs and compound nouns.",
        text="image captions",
        score="bleu",
        data=data.DATA_SETS["multi30k"].title,
        terms=data.DATA_SETS["multi30k"].terms,
        examples=lambda: read(*SPLITS),
        tests=lambda: read("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"),
        sizes=SMALL,
        recipe=Recipe(epochs=80, cooldown=2500),
        direction=(src, tgt),
    )


def translation(tgt: str, folder: Path | None = None, reverse: bool = False) -> Task:
    """English captions and everyday sentences into another language, or the other way round."""
    src, tgt = (tgt, "en") if reverse else ("en", tgt)

    def path(name: str) -> Path:
        return data.find(name, folder and Path(folder) / name)

    def captions(split: str) -> list[Example]:
        return data.read_multi30k(path("multi30k"), split, src, tgt)

    def everyday(split: str) -> list[Example]:
        return data.read_tatoeba(path("tatoeba"), split, src, tgt)

    def sets(split: str) -> dict[str, list[Example]]:
        return {"captions": captions(split), "everyday": everyday(split)}

    def examples() -> dict[str, list[Example]]:
        return {split: alternating(*sets(split).values()) for split in SPLITS}

    def tests() -> dict[str, list[Example]]:
        names = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
        return {name: captions(name) for name in names} | {"everyday": everyday("test")}

    described = [data.DATA_SETS[name] for name in ("multi30k", "tatoeba")]
    return Task(
        name=f"en-{src if reverse else tgt}",
        title=f"{LANGUAGES[src]} → {LANGUAGES[tgt]}, everyday sentences and image captions",
        look_for="Cross-attention follows the words. It leaves the diagonal where the word "
        f"order differs: try {TRY[tgt]}.",
        text="everyday sentences and image captions",
        score="bleu",
        data="; ".join(source.title for source in described),
        terms=" ".join(source.terms for source in described),
        examples=examples,
        tests=tests,
        sizes=TRANSLATOR,
        vocab_size=6500,
        recipe=Recipe(epochs=60, cooldown=4000, joined=0.1, casual=0.1),
        direction=(src, tgt),
        sets=sets,
    )


def english(folder: Path | None = None) -> Task:
    """The next token of an English sentence: captions and everyday sentences."""
    there = {name: translation(name, folder) for name in ("de", "fr")}

    def once(sets: list[list[Example]]) -> list[Example]:
        sources = dict.fromkeys(source for pairs in sets for source, _ in pairs)
        return [(source, source) for source in sources]

    def sets(split: str) -> dict[str, list[Example]]:
        both = [task.sets_of(split) for task in there.values()]
        return {name: once([some[name] for some in both]) for name in both[0]}

    def tests() -> dict[str, list[Example]]:
        both = [task.tests() for task in there.values()]
        return {name: once([some[name] for some in both]) for name in both[0]}

    return Task(
        name="english",
        title="English, one token after another",
        look_for="Heads may attend to the previous token, to the verb's subject, or to the "
        "start of the sentence, where idle heads rest.",
        text="everyday sentences and image captions",
        score="perplexity",
        data=there["de"].data,
        terms=there["de"].terms,
        examples=lambda: {split: alternating(*sets(split).values()) for split in SPLITS},
        tests=tests,
        preset="decoder_only",
        sizes=dict(d_model=128, n_heads=4, d_ff=512, n_decoder_layers=4, dropout=0.1),
        vocab_size=4000,
        recipe=Recipe(epochs=20, cooldown=2500, joined=0.1, casual=0.1, smoothing=0.0),
        continues=True,
        ends=True,
        sets=sets,
    )


def alternating(*sets: list[Example]) -> list[Example]:
    """All examples in turns, so that the first ones are a sample of every set."""
    turns = zip_longest(*sets)
    return [example for turn in turns for example in turn if example is not None]


def pairs(file: Path, seed: int = 1) -> Task:
    """A user's own parallel text: every twentieth pair, after shuffling, is for validation."""

    def read():
        examples = sorted(set(data.read_tsv(file)))
        if len(examples) < 2:
            raise DataError(f"{file}: one pair is not enough for training and validation.")
        random.Random(seed).shuffle(examples)
        n_val = max(1, len(examples) // 20)
        return {"train": examples[n_val:], "val": examples[:n_val]}

    return Task(
        name="pairs",
        title=f"Pairs of {Path(file).name}",
        look_for="Cross-attention shows which source words each target word comes from.",
        text=f"the sentences of {Path(file).name}",
        score="bleu",
        data=f"{Path(file).name}, provided by whoever trained the model.",
        terms="Those of that file.",
        examples=read,
        tests=lambda: {Path(file).stem: data.read_tsv(file)},
        sizes=SMALL,
    )


CLASSES = ("negative", "positive")


def reviews(folder: Path | None = None) -> Task:
    """Is a movie review good or bad? Every tenth line of each file is for the test."""

    def read(wanted):
        where = data.find("reviews", folder)
        return [
            (line, name)
            for name in CLASSES
            for number, line in enumerate(
                data.read_lines(where / f"rt-polarity.{name[:3]}"), start=1
            )
            if wanted == ("test" if number % 10 == 0 else "val" if number % 20 == 5 else "train")
        ]

    return Task(
        name="reviews",
        title="Movie reviews: good or bad",
        look_for="Layer 1 reads the whole sentence almost evenly, like a bag of words. In "
        "layer 2, each head leans towards some words: which of them change the "
        "verdict?",
        text="snippets of movie reviews",
        score="accuracy",
        data=data.DATA_SETS["reviews"].title,
        terms=data.DATA_SETS["reviews"].terms,
        examples=lambda: {split: read(split) for split in SPLITS},
        tests=lambda: {"every tenth line": read("test")},
        preset="bloem",
        sizes=dict(
            d_model=64,
            n_heads=2,
            d_ff=128,
            n_encoder_layers=2,
            n_decoder_layers=0,
            dropout=0.4,
            max_length=256,
        ),
        vocab_size=16_000,  # nearly all are whole words
        recipe=Recipe(
            epochs=16,
            max_tokens=1024,
            peak=2e-3,
            warmup=400,
            cooldown=2000,
            attention_dropout=0.4,
            weight_decay=0.03,
            r_drop=4.0,
        ),
        classes=CLASSES,
        first_weights=smaller_tables,
    )


LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 12
TOYS = {
    "copy": (
        lambda letters: letters,
        "Cross-attention is a diagonal: each position attends to the same position of the source.",
    ),
    "reverse": (
        lambda letters: letters[::-1],
        "Cross-attention is the opposite diagonal: the first position attends to the last.",
    ),
    "sort": (
        sorted,
        "Each target position attends to all copies of the letter it writes, wherever they are.",
    ),
}


def toy(name: str) -> Task:
    """Copy, reverse or sort letters: `d a c` → `d a c`, `c a d` or `a c d`."""
    answer, look_for = TOYS[name]

    def draw(split: str, count: int) -> list[Example]:
        """Different sequences; which split one belongs to, its checksum decides."""
        chance, examples = random.Random(name + split), {}
        while len(examples) < count:
            # Of few letters or of many: where letters repeat, only positions tell them apart.
            # To sort many repeats is to count them, which two layers do badly.
            fewest = 8 if name == "sort" else 2
            alphabet = chance.sample(LETTERS, chance.randint(fewest, len(LETTERS)))
            letters = chance.choices(alphabet, k=chance.randint(1, LONGEST))
            source = " ".join(letters)
            if SEQUENCE_SPLITS[zlib.crc32(source.encode()) % 10] == split:
                examples[source] = " ".join(answer(letters))
        return list(examples.items())

    return Task(
        name=name,
        title=f"{name.capitalize()} a sequence of letters",
        look_for=look_for,
        text=f"sequences of up to {LONGEST} lower-case letters, separated by spaces",
        score="exact",
        data=f"Sequences of 1 to {LONGEST} letters, drawn at random by model/training/tasks.py.",
        terms="None: generated by this program.",
        examples=lambda: {"train": draw("train", 40_000), "val": draw("val", 500)},
        tests=lambda: {"unseen": draw("test", 1000)},
        sizes=dict(
            d_model=48, n_heads=2, d_ff=64, n_encoder_layers=2, n_decoder_layers=2, dropout=0.0
        ),
        vocab_size=259 + len(LETTERS),  # the special tokens, every byte, every letter
        recipe=Recipe(
            epochs=26, max_tokens=2048, peak=4e-3, warmup=400, cooldown=1500, smoothing=0.0
        ),
    )


def induction() -> Task:
    """A random row of letters, and the same again (Olsson et al. 2022): what follows a letter can
    be known from where it stood before, and from nothing else. No letter stands twice in a row, and
    rows are of different lengths, so that position does not help. To learn from they are repeated
    up to one length: a batch has texts of one length, and would tell that of their rows."""

    def draw(split: str, count: int, length: int = 0) -> list[Example]:
        chance, examples = random.Random("induction" + split), {}
        while len(examples) < count:
            row = chance.sample(LETTERS, chance.randint(4, 20))
            text = " ".join((row * length)[:length] if length else row * 2)
            if SEQUENCE_SPLITS[zlib.crc32(" ".join(row).encode()) % 10] == split:
                examples[text] = " ".join(row)
        return list(examples.items())

    return Task(
        name="induction",
        title="Continue a repeating letter pattern",
        look_for="In the second repeat, a head of layer 2 attends to the letter after the same "
        "letter in the first: an induction head. It needs the previous-token heads of "
        "layer 1: switch layer 1 off, and the repeat is lost.",
        text="sequences of 4 to 20 different lower-case letters, written again and again",
        score="accuracy",
        data="Sequences of 4 to 20 different letters, repeated up to 40 letters, drawn at "
        "random by model/training/tasks.py. Scored on sequences written twice: on the "
        "second copy without its first letter, which nothing predicts.",
        terms="None: generated by this program.",
        examples=lambda: {"train": draw("train", 40_000, 40), "val": draw("val", 500, 40)},
        tests=lambda: {"unseen": draw("test", 1000)},
        preset="decoder_only",
        sizes=dict(d_model=64, n_heads=4, d_ff=64, n_decoder_layers=2, dropout=0.0, max_length=256),
        vocab_size=259 + len(LETTERS),
        recipe=Recipe(
            epochs=12, max_tokens=2048, peak=3e-3, warmup=400, cooldown=2000, smoothing=0.0
        ),
        continues=True,
    )


def with_more(task: Task, file: Path) -> Task:
    """The task with the pairs of a file to train on besides."""
    if task.score != "bleu":
        raise DataError(f"Only a task that translates can use more pairs; {task.title!r} does not.")

    def examples() -> dict[str, list[Example]]:
        task_examples = task.examples()
        return task_examples | {"train": task_examples["train"] + data.read_tsv(file)}

    def sets(split: str) -> dict[str, list[Example]]:
        more = {"also": data.read_tsv(file)} if split == "train" else {}
        return task.sets_of(split) | more

    return replace(task, examples=examples, also=Path(file).name, sets=sets)


SEQUENCE_SPLITS = ("train",) * 8 + ("val", "test")


def task(name: str | None, path: Path | None = None, reverse: bool = False) -> Task:
    """A task by name; `path` is the folder of its data set, for `pairs` its file."""
    if name == "multi30k":
        return multi30k(path, reverse)
    if name in TRANSLATIONS:
        return translation(name.removeprefix("en-"), path, reverse)
    if name == "pairs":
        if path is None:
            raise DataError("The task `pairs` needs a file of pairs.")
        return pairs(path)
    if name == "reviews":
        return reviews(path)
    if name == "english":
        return english(path)
    if name == "induction":
        return induction()
    if name is None or name not in TOYS:
        raise DataError(f"There is no task {name!r}; choose from {', '.join(NAMES)}.")
    return toy(name)


def of_card(card: dict, path: Path | None = None) -> Task:
    """What a model was trained to do, by its card; `path` as for `task`."""
    return task(card.get("task"), path, card.get("direction", ["en"])[0] != "en")


TRANSLATIONS = ("en-de", "en-fr")
NAMES = ("multi30k", *TRANSLATIONS, "english", "reviews", *TOYS, "induction", "pairs")
