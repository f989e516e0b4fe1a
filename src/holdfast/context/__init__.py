"""What goes into the model for one turn: sections, packed into a budget of tokens, and rendered for whoever asks.

Everything here is pure: it is given what there is to show and how to count, and reads nothing. Deliberately absent:
the store, recall, models and tokenizers (``sessions`` passes in what they give).
"""
