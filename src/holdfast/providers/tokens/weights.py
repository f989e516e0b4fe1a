"""What each kind of character costs in each family of tokenisers, in hundredths of a token.

Fitted in the way of ``tools/tokens.py``, never by hand. The kinds are those of ``estimate.KINDS``, in that order: words
by length, then patterns among kinds of characters, then scripts by the first bytes of their characters in UTF-8.
"""

from __future__ import annotations

_TABLE = """
kind                    any    large   claude claude-5    small
words                    98       98       98      150       98
letters                  21       20       28       22       22
longer than 3            53       14        0        0       39
longer than 10           69        0      123        0       58
longer than 14          158       74        0       67      165
eights                   77       78       19      300       75
cccc                    311      272      329      450      267
'A'                      25       17       18       55       24
'aA'                     55       32       88        0       33
'0'                      99      105       79       52       99
' 0'                    180       98       86      369      179
'.'                      98       90      110      141       99
'..'                    -15      -33      -55      -60      -28
'n'                     117       87      109      121      122
'nn'                    -28      -60      -32      -60      -37
'n '                     28       50       44       36       24
'  '                     20       35       28       11       21
'   '                    65       47       47       64       66
'        '              -60      -60      -60      -60      -60
't'                     121      120      121      120      121
'c'                     121      120      120       30      121
l                       232      147      126       85      241
l c3                     95       79       73       30       99
l c2                    180      180      220      252      121
g                       130      112      131      108      101
' g'                     46        0       41        0       91
y                        99       87       87       98       99
' y'                     22        0        0        0       22
h                       214      214      215      158      213
r                       136      114      136      129      118
' r'                     73       19       40        0      134
i                       304      311      304      204      295
' i'                     52        9       52        0      107
i e0a4                  126      120      125       73      104
i e0a5                  207      160      207      157      223
i e0a6                  199      156      187       93      200
i e0a7                  245      145      288      162      182
i e0ae                  205      183      204       82      186
i e0af                  197      101      198      147      176
i e0b8                  191      113      186       91      192
i e0b9                  192       68      189      145      175
e                       302      298      302      205      295
e e1ba                  149       30       30       30      154
e e1bb                  131      114      299       30      116
e e183                  211      211      154       94      211
s                       303      265      288      288      303
s e280                  181      120      181      180      121
s e294                  161      166       95       67      163
s e295                  289      524      191      199      289
k                       240      240      198      198      181
k e381                  126      120      121      121      135
k e382                  243       33       36       31      242
k e383                  163      169      184      136      162
z                       238      120      121      120      236
'zz'                    -60       70       39       27      -60
o                       285      180      182      182      284
' o'                      0        0        0        0        0
p                       301      181      301      300      240
p efbc                  131      210      208       93      148
p efb88f                220      289       68       30      149
m                       394      392      290      288      394
"""


def _columns(table: str) -> dict[str, tuple[int, ...]]:
    head, *rows = table.strip("\n").splitlines()
    families = head.split()[1:]
    cells = [row.split()[-len(families) :] for row in rows]
    return {family: tuple(int(row[place]) for row in cells) for place, family in enumerate(families)}


WEIGHTS = _columns(_TABLE)
