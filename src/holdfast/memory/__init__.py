"""What is remembered: memories and their collections, the facts and links that follow from them, and what contradicts.

``collection`` keeps the memories of one pair of user and agent, ``visible`` reads the collections that a handle sees as
one, ``facts`` works out what is true and when, ``graph`` what is linked to what (``drawing`` shows it), ``conflicts``
what contradicts. Deliberately absent: finding by meaning (``retrieval``).
"""
