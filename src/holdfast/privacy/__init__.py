"""What people have a right to: to be forgotten for good."""
