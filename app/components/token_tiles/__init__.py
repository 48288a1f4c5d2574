"""A text as the tokens that a model reads, in tiles; and the merges of one of its words."""

from headlight.app.components.registered import Picture

# Of `words`, each with its tokens and their ids, and what is told as `chosen` if it is clicked, -1:
# it cannot be, as no special token can; that of the framed one, `chosen`; its merges, `rows`, each
# with its `name`, the `symbols` after it and the place of the new one, `at`, the last of which are
# its tokens if it `isDone`; `lines`, [name, text]; and `notes` below them.
token_tiles = Picture("token_tiles")
