"""A trilingual grammar that generates sentence pairs with gold word alignments.

`meaning` holds language-independent meanings. `sampling` draws one at random. `english`, `french`
and `chinese` each realise a meaning as a list of words that carry marks; words of two languages
that share a mark are aligned (`alignment`). `lexicon` holds the words of all three. `corpus`
collects distinct pairs.
"""
