"""The room that takes data out of a store and brings it back: archives, export, import, backup and restore.

``archive`` is the document and its forms, ``audit`` proves it, ``as_json``, ``as_yaml`` and ``as_msgpack`` write and
read it, ``formats`` picks one of them. ``reach`` says what belongs to a selection, ``exporter``, ``importer`` and
``backup`` are what the store calls. Deliberately absent: opening engines by URL, clocks, and anything printed.
"""
