"""Time as people write it: stamps, expressions in running text, and events that stand for a time.

``parse_moment`` reads one stamp ("1:56 pm on 8 May, 2023"), ``read_moment`` what someone types as a time ("yesterday",
"3 days ago", or a stamp), ``find`` the expressions in a text, resolved against a
moment that is passed in, and ``find_events`` phrases such as "before the trip" whose moment someone else must look up.
None of them ever raises because of a text, and all take time in proportion to its length. English, and ISO dates
anywhere. The rules, with ``now`` as the moment of speaking:

- An interval is half-open, [since, until), in UTC; None is an open end. Days begin at midnight in the zone of ``now``.
- Weeks begin on Monday, a weekend is Saturday and Sunday. Seasons are those of the north: summer is June to August.
- "last Friday" is the Friday before today, "next Friday" the first one after today, "this Friday" that of this week.
  "last week" and its like are whole calendar units; "the last week" and "the past 10 days" reach back from now.
- "last May" and "last summer" are the latest that are over. "in May", "on Friday", "in summer" are the most recent that
  have begun; "8 May" is the nearest to now. A word that looks ahead earlier in the same sentence ("will", "going to",
  "I have a", "booked", "due") makes them the first that are not over; so do "until" and "by".
- "two days ago" is that day, "two weeks ago" the seven days around that day, "two months ago" and "two years ago" that
  calendar month and year. A couple is 2 to 3, a few 2 to 5, several 3 to 8.
- "early", "mid" and "late" are the thirds of a unit; of a month the days 1-10, 11-20 and the rest.
- "since" and "from" begin with the unit, "after" begins when it is over; "before" ends when the unit begins, "until"
  and "by" when it is over; "between" and "from … to" reach from the first to the end of the second.

Deliberately absent: what cannot be resolved from ``now`` alone ("3 days later", "the next day", "recently"); ambiguous
numbers (03/04/2024); durations; and the wall clock.
"""

from __future__ import annotations

from holdfast.when.events import Landmark, find_events
from holdfast.when.spans import Span, find
from holdfast.when.stamps import parse_moment, read_moment
from holdfast.when.words import DAY, Pattern

__all__ = ["DAY", "Landmark", "Pattern", "Span", "find", "find_events", "parse_moment", "read_moment"]
