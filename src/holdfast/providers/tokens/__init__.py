"""How many tokens a text has for a model, and how many a model accepts. No network, and no key.

``counting`` says what a counter is and wraps each one, ``exact`` counts with the real vocabularies, ``estimate``
without any, ``windows`` knows the sizes of models, and ``choose`` makes a counter from what a caller names. Nothing is
imported here, so programs that count nothing pay nothing. Deliberately absent: the tokens themselves (nobody needs
more than their number), what a vendor adds around each message, images and tools, and prices.
"""
