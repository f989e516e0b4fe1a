"""What goes into the model for one turn: sections, packed into a budget of tokens, and rendered for a client.

Everything here is pure: it is given the material and a way to count, and reads nothing. Deliberately absent:
the store, recall, models and tokenizers (``sessions`` passes in what they give).
"""
