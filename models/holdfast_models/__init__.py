"""The model files of Holdfast: those of MiniLM and of the reranker.

There is nothing to import here. Holdfast finds the files by the name of this package and checks their digests before it
uses them; ``SHA256SUMS`` has the digests for people.
"""
