"""What people have a right to: to be forgotten for good (``erase``), and to have it proved (``verify``)."""
